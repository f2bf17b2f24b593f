package task

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/class"
)

// Limits for queues and tags.
const (
	MaxLabel = class.MaxLabel // maximum length of the name of a queue in characters
	MaxTag   = 192            // maximum length of a tag in characters
	MaxTags  = 16             // maximum number of tags of a task
)

// CheckLabel checks the name of a queue. Such a name consists of letters, digits and the characters . _ - / @.
func CheckLabel(property, s string) error {
	err := class.CheckQueue(s)
	if err != nil {
		return invalidProperty(property, "%v", err)
	}
	return nil
}

// CheckTag checks a tag. It may have any characters except commas and control characters, and no blanks at its ends.
func CheckTag(property, s string) error {
	switch {
	case s == "":
		return invalidProperty(property, "a tag is empty; want 1 to %d characters", MaxTag)
	case !utf8.ValidString(s):
		return invalidProperty(property, "%q is not valid UTF-8", s)
	case utf8.RuneCountInString(s) > MaxTag:
		return invalidProperty(property, "%.20q… has %d characters; at most %d are allowed", s,
			utf8.RuneCountInString(s), MaxTag)
	case strings.ContainsFunc(s, func(r rune) bool {
		return r == ',' || unicode.IsControl(r)
	}) || strings.TrimSpace(s) != s:
		return invalidProperty(property,
			"%q is no tag; want no commas, no control characters, and no blanks at the ends", s)
	}
	return nil
}

func checkQueue(name, s string) error {
	if s == "" {
		return nil
	}
	return CheckLabel(name, s)
}

func checkTags(name string, tags []string) error {
	if len(tags) > MaxTags {
		return invalidProperty(name, "there are %d tags; at most %d are allowed", len(tags), MaxTags)
	}
	for _, tag := range tags {
		if err := CheckTag(name, tag); err != nil {
			return err
		}
	}
	return nil
}

// SplitTags returns the tags in a text such as "gpu, ssd", without the blanks around them. Between two commas without a
// tag, it returns an empty tag, which is invalid.
func SplitTags(s string) (tags []string) {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	for part := range strings.SplitSeq(s, ",") {
		tags = append(tags, strings.TrimSpace(part))
	}
	return tags
}

// JoinTags returns the text from which [SplitTags] makes the same tags, in alphabetical order and each of them once.
func JoinTags(tags []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(tags))), ",")
}

// Place returns the name in Redis of the task's place among the open tasks: its requirement and priority. It is "" for
// a task with no queue, no tags, no priority, no handler, no limit key, no claim_before, no group with by_group, no
// input in base64, no resources, no min_time, no fetch and no blobs (docs/redis.md, "Open tasks"). Workers of the
// original TDF claim only tasks without a place. So they never claim a task with a property that they do not know. If
// Apart is set, a task whose program the original TDF cannot fetch also has a place.
func (d *Properties) Place() string {
	byGroup := d.ByGroup && d.Group != ""
	needsPlace := d.LimitKey != "" || d.ClaimBefore < Never || byGroup ||
		d.InputEncoding == InputBase64 || d.Resources != "" || d.MinTime > 0 || len(d.Fetch) > 0 || len(d.Blobs) > 0 ||
		d.Apart && !OriginalFetches(d.Source)
	if d.Queue == "" && d.Priority == 0 && len(d.Tags) == 0 && d.Source != "" && !needsPlace {
		return ""
	}
	name := d.Requirement().String()
	switch {
	case byGroup && d.Queue == class.TaskStore && d.Source == "":
		return class.TaskStoreSet(d.Group)
	case d.Priority == 0 && name == class.Plain && !needsPlace:
		return ""
	case byGroup:
		return class.GroupSet(d.Group) + class.Separator + PlaceIn(name, d.Priority)
	}
	return PlaceIn(name, d.Priority)
}

const priorityPart = "priority="

// PlaceIn returns the name of the place with a priority in the set of a requirement, or of a reason to hold tasks.
func PlaceIn(set string, priority int) string {
	if priority == 0 {
		return set
	}
	level := priorityPart + strconv.Itoa(priority)
	if set == class.Plain {
		return level
	}
	return level + class.Separator + set
}
