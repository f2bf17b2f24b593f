package config

import (
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/lazy"
	"github.com/tdf-framework/tdf/internal/task"
)

// A kind says which values of a key are valid, and stores them.
type kind struct {
	want string                       // description of valid values; errors put it after "is not"
	set  func(*settings, string) bool // parses and stores a value; returns false if the value is invalid
}

func bind[T any](want string, parse func(string) (T, bool), at func(*settings) *T) kind {
	return kind{want, func(s *settings, text string) bool {
		v, ok := parse(text)
		if ok {
			*at(s) = v
		}
		return ok
	}}
}

// matching returns a kind that checks a text, and stores it unchanged.
func matching(want string, valid func(string) bool, at func(*settings) *string) kind {
	return bind(want, func(s string) (string, bool) { return s, valid(s) }, at)
}

func text(at func(*settings) *string) kind {
	return matching("text without control characters", plain, at)
}

func path(at func(*settings) *string) kind {
	return matching(aPath, func(s string) bool { return s != "" && fits(s) }, at)
}

// The longest path, and the longest part of a path, that the systems of workers know, in bytes.
const (
	maxPath = 4095
	maxPart = 255
)

const aPath = "a path of up to 4095 bytes, and up to 255 in each part"

// fits reports whether a text can be a path.
func fits(s string) bool {
	long := func(part string) bool { return len(part) > maxPart }
	return plain(s) && len(s) <= maxPath && !slices.ContainsFunc(strings.Split(s, "/"), long)
}

func plain(s string) bool { return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl) }

// noneWithComment matches the password None with a comment on the same line. A comment must have its own line.
var noneWithComment = lazy.Regexp(`^None\s+[;#]`)

func password(at func(*settings) *string) kind {
	parse := func(s string) (string, bool) {
		if s == "None" {
			s = ""
		}
		return s, !noneWithComment().MatchString(s)
	}
	return bind("a password, or None for none (a comment needs its own line)", parse, at)
}

const maxNamespace = 200 // bytes

func namespace(at func(*settings) *string) kind {
	return matching(fmt.Sprintf("a name of 1 to %d bytes without spaces or parts like :task", maxNamespace),
		validNamespace, at)
}

func validNamespace(s string) bool {
	return s != "" && len(s) <= maxNamespace && plain(s) && !strings.ContainsFunc(s, unicode.IsSpace) &&
		task.CollidesWithKeys(s) == ""
}

// maxNamespaces is the largest number of namespaces that work as one.
const maxNamespaces = 32

// namespaces returns the kind of a list of namespaces, each once.
func namespaces(at func(*settings) *[]string) kind {
	parse := func(s string) ([]string, bool) {
		all := words(s)
		for i, name := range all {
			if !validNamespace(name) || slices.Contains(all[:i], name) {
				return nil, false
			}
		}
		return all, len(all) <= maxNamespaces
	}
	return bind(fmt.Sprintf("up to %d namespaces, each once, separated by blanks or commas", maxNamespaces), parse, at)
}

// host returns the kind of a host's name or address, or of a socket's path. This kind refuses a value with a port or a
// scheme.
// Without this check, the component would return a less clear error when it connects.
func host(at func(*settings) *string) kind {
	return matching(wantHost, isHost, at)
}

const wantHost = "a host's name or address (its port has a key of its own), or the path of a socket"

func isHost(s string) bool {
	return isSocket(s) && plain(s) || s != "" && plain(s) && !strings.ContainsFunc(s, unicode.IsSpace) &&
		!strings.ContainsAny(s, "/@[]") && strings.Count(s, ":") != 1
}

var placeholder = lazy.Regexp(`\$(program|worker|taskId|round)`)

func filename(at func(*settings) *string) kind {
	valid := func(s string) bool {
		return s != "" && fits(s) && !strings.Contains(placeholder().ReplaceAllString(s, ""), "$")
	}
	return matching(aPath+", with no $ except in $program, $worker, $taskId and $round", valid, at)
}

// programFile returns the kind of a path that may contain $program.
func programFile(at func(*settings) *string) kind {
	valid := func(s string) bool { return fits(s) && !strings.Contains(strings.ReplaceAll(s, "$program", ""), "$") }
	return matching(aPath+", with no $ except in $program", valid, at)
}

// userName returns the kind of a user's name. The name may contain %n, the number of the slot, so that each slot has
// its own user.
func userName(at func(*settings) *string) kind {
	valid := func(s string) bool { return plain(s) && !strings.Contains(strings.ReplaceAll(s, "%n", ""), "%") }
	return matching("a user's name or number, with no % except in %n", valid, at)
}

func group(at func(*settings) *string) kind {
	return matching(fmt.Sprintf("a name of up to %d bytes", task.MaxName), func(s string) bool {
		return len(s) <= task.MaxName && plain(s)
	}, at)
}

var variable = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*$`)

func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

func listOf(want string, valid func(string) bool, at func(*settings) *[]string) kind {
	parse := func(s string) ([]string, bool) {
		list := words(s)
		if len(list) == 0 {
			return nil, true
		}
		return list, !slices.ContainsFunc(list, func(word string) bool { return !valid(word) })
	}
	return bind(want+", separated by blanks or commas", parse, at)
}

// maxAddresses is the largest number of sentinels, and of nodes.
const maxAddresses = 20

var wantAddresses = fmt.Sprintf("up to %d addresses HOST:PORT, each once, separated by blanks or commas", maxAddresses)

// parseAddresses parses a list of addresses, each with a port and once.
func parseAddresses(s string) (all []string, ok bool) {
	for _, word := range words(s) {
		host, port, err := net.SplitHostPort(word)
		n, invalid := strconv.ParseUint(port, 10, 16)
		if err != nil || invalid != nil || n == 0 || host == "" || !plain(host) ||
			strings.ContainsAny(host, "/@[]") || slices.Contains(all, word) {
			return nil, false
		}
		all = append(all, word)
	}
	return all, len(all) <= maxAddresses
}

// sentinels returns the kind of the sentinels' addresses, after the name by which they know Redis.
func sentinels() kind {
	return kind{"nothing, or NAME@ and " + wantAddresses, func(s *settings, text string) bool {
		name, list, _ := strings.Cut(text, "@")
		all, ok := parseAddresses(list)
		if !ok || (name == "") != (len(all) == 0) || !plain(name) {
			return false
		}
		s.redis.Master, s.redis.Sentinels = strings.TrimSpace(name), all
		return true
	}}
}

func names(at func(*settings) *[]string) kind {
	valid := func(s string) bool {
		return variable().MatchString(s) && !strings.HasPrefix(s, "TDF_")
	}
	return listOf("names of variables that do not begin with TDF_", valid, at)
}

// queues returns the kind of a list of queues with weights. Each queue may occur once.
func queues(at func(*settings) *[]class.QueueShare) kind {
	parse := func(s string) (all []class.QueueShare, ok bool) {
		for _, word := range words(s) {
			q, err := class.ParseQueueShare(word)
			if err != nil || slices.ContainsFunc(all, func(other class.QueueShare) bool {
				return other.Queue == q.Queue
			}) {
				return nil, false
			}
			all = append(all, q)
		}
		return all, true
	}
	return bind(fmt.Sprintf("names of queues, each once, such as a,b or a:3,b:1 with weights from 1 to %d",
		class.MaxWeight), parse, at)
}

func tags(most int, at func(*settings) *[]string) kind {
	parse := func(s string) ([]string, bool) {
		all := task.SplitTags(s)
		return all, len(all) <= most && !slices.ContainsFunc(all, func(tag string) bool {
			return task.CheckTag("", tag) != nil
		})
	}
	return bind(fmt.Sprintf("up to %d tags, separated by commas", most), parse, at)
}

// resources returns the kind of an offer of resources.
func resources(at func(*settings) *divided[*class.ResourceOffer]) kind {
	parse := func(s string) (*class.ResourceOffer, bool) {
		o, err := class.ParseResourceOffer(s)
		return o, err == nil
	}
	return inParts("none, auto, amounts such as cpus=8 memory=16G licence=1 with whole cpus and gpus, auto and amounts, "+
		"or amounts for each namespace, such as a:cpus=4 b:cpus=4", parse, at)
}

// MaxSlots is the largest number of slots of a worker. No machine needs more, and each costs memory and open files.
const MaxSlots = 1000

// slots returns the kind of a number of slots. The value auto means one slot per core, and is stored as 0.
func slots(at func(*settings) *divided[int]) kind {
	parse := func(s string) (int, bool) {
		if s == "auto" {
			return 0, true
		}
		n, err := strconv.Atoi(s)
		return n, err == nil && 1 <= n && n <= MaxSlots
	}
	return inParts(fmt.Sprintf("a whole number from 1 to %d, auto, or a number for each namespace, such as a:4,b:4",
		MaxSlots), parse, at)
}

func oneOf[T ~string](at func(*settings) *T, allowed ...string) kind {
	parse := func(s string) (T, bool) { return T(s), slices.Contains(allowed, s) }
	return bind("one of "+strings.Join(allowed, ", "), parse, at)
}

var levels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

func level(at func(*settings) *slog.Level) kind {
	parse := func(s string) (slog.Level, bool) {
		l, ok := levels[strings.ToLower(s)]
		return l, ok
	}
	return bind("one of debug, info, warn, error", parse, at)
}

func truth(at func(*settings) *bool) kind {
	parse := func(s string) (value, ok bool) {
		switch strings.ToLower(s) {
		case "true", "yes", "on", "1":
			return true, true
		case "false", "no", "off", "0":
			return false, true
		}
		return false, false
	}
	return bind("True or False", parse, at)
}

func whole[T ~int | ~int64](low, high int64, at func(*settings) *T) kind {
	parse := func(s string) (T, bool) {
		n, err := strconv.ParseInt(s, 10, 64)
		return T(n), err == nil && low <= n && n <= high
	}
	return bind(fmt.Sprintf("a whole number from %d to %d", low, high), parse, at)
}

// size returns the kind of a whole number of bytes.
func size(low, high int64, at func(*settings) *int64) kind {
	k := whole(low, high, at)
	k.want = fmt.Sprintf("a whole number of bytes from %d to %d", low, high)
	return k
}

// maxSeconds is the maximum of a duration, about 31 years. With this limit, the sum of several durations does not
// overflow.
const maxSeconds = 1e9

// duration returns the kind of a number of seconds from 0 up. If opts.above is true, 0 is invalid. If opts.inf is
// true, "inf" is valid and means Forever. Durations below opts.least are invalid.
func duration(opts spanOpts, at func(*settings) *time.Duration) kind {
	most := task.Seconds(maxSeconds)
	if opts.most > 0 {
		most = task.For(opts.most)
	}
	parse := func(s string) (time.Duration, bool) {
		v, err := task.ParseSeconds(s)
		d := v.Std()
		switch {
		case err != nil, opts.above && d <= 0, d < opts.least:
			return 0, false
		case math.IsInf(float64(v), 1):
			return Forever, opts.inf
		}
		return d, v <= most
	}
	return bind(opts.want(fmt.Sprintf(", at most %.0f", most)), parse, at)
}

type spanOpts struct {
	above, inf  bool
	least, most time.Duration // most: 0 means maxSeconds
}

func (o spanOpts) want(limit string) string {
	want := "a number of seconds from 0 up"
	switch {
	case o.least > 0:
		want = fmt.Sprintf("a number of seconds from %v up", o.least.Seconds())
	case o.above:
		want = "a number of seconds above 0"
	}
	want += limit
	if o.inf {
		want += ", or inf"
	}
	return want
}
