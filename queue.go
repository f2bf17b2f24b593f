package tdf

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits for queues and tags.
const (
	MaxLabel = 64 // maximum length of the name of a queue or tag in characters
	MaxTags  = 16 // maximum number of tags of a task
)

// DefaultQueue stands for the tasks without a queue, for example in a worker's key `queues`.
const DefaultQueue = "default"

// CheckLabel checks the name of a queue or a tag. Such a name consists of letters, digits and the characters . _ - / @.
func CheckLabel(property, s string) error {
	switch {
	case s == "":
		return invalidProperty(property, "a name is empty; want 1 to %d characters", MaxLabel)
	case !utf8.ValidString(s):
		return invalidProperty(property, "%q is not valid UTF-8", s)
	case utf8.RuneCountInString(s) > MaxLabel:
		return invalidProperty(property, "%.20q… has %d characters; at most %d are allowed", s, utf8.RuneCountInString(s), MaxLabel)
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return !inLabel(r) }); i >= 0 {
		r, _ := utf8.DecodeRuneInString(s[i:])
		return invalidProperty(property, "%q contains %q; want only letters, digits and the characters . _ - / @", s, string(r))
	}
	return nil
}

func inLabel(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-/@", r)
}

func (d *Properties) checkQueue() error {
	if d.Queue != "" {
		if err := CheckLabel(fieldQueue, d.Queue); err != nil {
			return err
		}
	}
	if d.Priority < math.MinInt32 || d.Priority > math.MaxInt32 {
		return invalidProperty(fieldPriority, "%d is not a number from %d to %d", d.Priority, math.MinInt32, math.MaxInt32)
	}
	if len(d.Tags) > MaxTags {
		return invalidProperty(fieldTags, "there are %d tags; at most %d are allowed", len(d.Tags), MaxTags)
	}
	for _, tag := range d.Tags {
		if err := CheckLabel(fieldTags, tag); err != nil {
			return err
		}
	}
	return nil
}

// SplitTags returns the tags in a text such as "gpu,ssd", without blanks around them.
func SplitTags(s string) []string {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	tags := strings.Split(s, ",")
	for i := range tags {
		tags[i] = strings.TrimSpace(tags[i])
	}
	return tags
}

// JoinTags returns the text from which [SplitTags] makes the same tags, in alphabetical order and each of them once.
func JoinTags(tags []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(tags))), ",")
}

// Place returns the name in Redis of the task's place in the open list: its partition and priority. It is "" for a task with
// no queue, no tags, no priority, no handler and no limit key (docs/redis.md, "Open tasks"). Workers of older releases claim
// only tasks without a place. So they never claim a task with a limit key, and cannot exceed its limit.
func (d *Properties) Place() string {
	if d.Queue == "" && d.Priority == 0 && len(d.Tags) == 0 && d.Source != "" && d.LimitKey == "" {
		return ""
	}
	name := d.Partition().String()
	if d.Priority == 0 && name == DefaultPartition && d.LimitKey == "" {
		return ""
	}
	return PlaceIn(name, d.Priority)
}

const priorityPart = "priority="

// PlaceIn returns the name of the place with a priority in a partition.
func PlaceIn(partition string, priority int) string {
	if priority == 0 {
		return partition
	}
	level := priorityPart + strconv.Itoa(priority)
	if partition == DefaultPartition {
		return level
	}
	return level + partSeparator + partition
}

// queue reads the queue, the priority and the tags.
func (p *parser) queue(d *Properties) {
	d.Queue, d.Tags = p.h[fieldQueue], SplitTags(p.h[fieldTags])
	if s := p.h[fieldPriority]; s != "" {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil {
			p.fail(invalidProperty(fieldPriority, "%q is not a number from %d to %d", s, math.MinInt32, math.MaxInt32))
			n = 0
		}
		d.Priority = int(n)
	}
	if err := d.checkQueue(); err != nil {
		p.fail(err)
		d.Queue, d.Priority, d.Tags = "", 0, nil
	}
}
