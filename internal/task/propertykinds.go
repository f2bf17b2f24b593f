package task

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/unixtime"
)

// A rowOf makes a [Property]. P is the type of its values in [Properties], and S their type in [Definition] and
// [Changes].
type rowOf[P, S any] struct {
	name, json      string // json is the name in JSON, if it differs
	meaning, help   string
	original        bool
	inLists, always bool
	of              string
	is              kind[P, S]
	at              func(*Properties) *P
	value           func(*Definition) *S  // for a field whose zero means that it is not set
	setting         func(*Definition) **S // for a field whose zero is nil
	change          func(*Changes) **S    // nil if the property cannot change
}

// A kind describes values. The functions parse and parseJSON return false for an invalid text, and check returns an
// error for an invalid value.
type kind[P, S any] struct {
	unit      Unit
	want      string
	parse     func(text string) (P, bool)
	why       func(name, text string) error // explains an invalid text; nil if want says enough
	format    func(P) string
	parseJSON func(data []byte) (P, bool)
	json      func(P) any
	isZero    func(S) bool
	equal     func(a, b P) bool
	check     func(name string, v P) error
	public    func(P) S
	stored    func(S) P
}

func (r rowOf[P, S]) property() Property {
	at, is := r.at, r.is
	p := Property{
		Name: r.name, JSON: cmp.Or(r.json, r.name), Want: is.want, Meaning: r.meaning, Help: r.help, Unit: is.unit,
		InLists: r.inLists, Always: r.always, Of: r.of, original: r.original,
		read:     reading(at, is.parse),
		readJSON: reading(at, is.parseJSON),
		text:     func(d *Properties) string { return is.format(*at(d)) },
		value:    func(d *Properties) any { return is.json(*at(d)) },
		isUsual:  func(d *Properties) bool { return is.equal(*at(d), *at(&usual)) },
		check:    func(d *Properties) error { return is.check(r.name, *at(d)) },
	}
	p.why = func(text string) error {
		if is.why == nil {
			return nil
		}
		return is.why(r.name, text)
	}
	p.define, p.defined = r.definition()
	if r.change != nil {
		p.change, p.changed = settings(r.change, at, is)
	}
	return p
}

func reading[P any, T string | []byte](at func(*Properties) *P, parse func(T) (P, bool)) func(*Properties, T) bool {
	return func(d *Properties, text T) bool {
		v, ok := parse(text)
		if ok {
			*at(d) = v
		}
		return ok
	}
}

// definition returns the functions define and defined of a Property.
func (r rowOf[P, S]) definition() (func(*Properties, *Definition) bool, func(*Properties, *Definition)) {
	if r.value == nil {
		return settings(r.setting, r.at, r.is)
	}
	at, in, is := r.at, r.value, r.is
	define := func(d *Properties, from *Definition) bool {
		v := in(from)
		if is.isZero(*v) {
			return false
		}
		*at(d) = is.stored(*v)
		return true
	}
	return define, func(d *Properties, to *Definition) { *in(to) = is.public(*at(d)) }
}

// settings returns two functions for a field that is a pointer, in a struct of type D: one stores its value as a
// property, and the other one does the opposite.
func settings[D, P, S any](in func(*D) **S, at func(*Properties) *P, is kind[P, S]) (func(*Properties, *D) bool,
	func(*Properties, *D),
) {
	set := func(d *Properties, from *D) bool {
		v := *in(from)
		if v != nil {
			*at(d) = is.stored(*v)
		}
		return v != nil
	}
	return set, func(d *Properties, to *D) { *in(to) = new(is.public(*at(d))) }
}

// numeric makes a kind of values between bounds. A text outside of them is invalid, so that the property keeps its
// default.
func numeric[P cmp.Ordered, S comparable](want string, parse func(string) (P, error), format func(P) string,
	valid func(P) bool, public func(P) S, stored func(S) P,
) kind[P, S] {
	read := func(text string) (P, bool) {
		v, err := parse(text)
		return v, err == nil && valid(v)
	}
	return kind[P, S]{
		want: want, parse: read, format: format, public: public, stored: stored,
		parseJSON: func(data []byte) (P, bool) { return read(string(data)) },
		json:      func(v P) any { return v },
		isZero:    func(v S) bool { return v == *new(S) },
		equal:     func(a, b P) bool { return a == b },
		check: func(name string, v P) error {
			if !valid(v) {
				return invalidProperty(name, "%v is not %s", v, want)
			}
			return nil
		},
	}
}

func same[T any](v T) T { return v }

func count(low, high int) kind[int, int] {
	return numeric(fmt.Sprintf("a whole number from %d to %d", low, high), strconv.Atoi, strconv.Itoa,
		func(n int) bool { return low <= n && n <= high }, same[int], same[int])
}

func number(low, high float64) kind[float64, float64] {
	parse := func(s string) (float64, error) {
		v, err := ParseSeconds(s) // no hexadecimal numbers
		return float64(v), err
	}
	return numeric(fmt.Sprintf("a number from %v to %v", low, high), parse, unixtime.Format,
		func(v float64) bool { return low <= v && v <= high }, same[float64], same[float64])
}

// bounds are the bounds of a time or a span in seconds.
type bounds struct {
	above, inf bool    // whether it must be above 0; whether it may be infinite
	most       Seconds // if above 0, the largest span
}

func (b bounds) allow(v float64) bool {
	switch {
	case !unixtime.Valid(v), b.above && v < float64(leastSeconds), b.most > 0 && v > float64(b.most):
		return false
	}
	return b.inf || !math.IsInf(v, 1)
}

func (b bounds) want(of, from string) string {
	if b.above {
		from = " above 0"
	}
	if b.most > 0 {
		from += fmt.Sprintf(", at most %v", b.most)
	}
	if b.inf {
		from += ", or inf"
	}
	return of + from
}

// moment is the kind of a time. In JSON, it is an RFC 3339 time, or "inf".
func moment(b bounds) kind[Time, time.Time] {
	k := numeric(b.want("a Unix time in seconds", " from 0 up"), ParseTime, Time.String,
		func(t Time) bool { return b.allow(float64(t)) }, Time.Std, At)
	k.unit, k.isZero = UnitTime, time.Time.IsZero
	k.json = func(t Time) any {
		if t == Never {
			return infinite
		}
		return t.Std().UTC().Format("2006-01-02T15:04:05.000000Z07:00")
	}
	k.parseJSON = func(data []byte) (Time, bool) {
		var text string
		if json.Unmarshal(data, &text) != nil {
			return 0, false
		}
		if text == infinite {
			return Never, b.inf
		}
		at, err := time.Parse(time.RFC3339, text)
		return At(at), err == nil && b.allow(float64(At(at)))
	}
	return k
}

const infinite = "inf"

// secondsOf is For, but marks a duration below a millisecond, such as 3600, with a minus. It was probably meant in
// seconds, and a check of the span refuses it.
func secondsOf(d time.Duration) Seconds {
	if 0 < d && d < time.Millisecond {
		return -For(d)
	}
	return For(d)
}

// span is the kind of a span. In JSON, it is a number of seconds, or "inf".
func span(b bounds) kind[Seconds, time.Duration] {
	k := numeric(b.want("a number of seconds", " from 0 up"), ParseSeconds, Seconds.String,
		func(s Seconds) bool { return b.allow(float64(s)) }, Seconds.Std, secondsOf)
	k.unit = UnitSpan
	check := k.check
	k.check = func(name string, s Seconds) error {
		if n := -s * 1e9; 0 < n && n < Seconds(time.Millisecond) {
			return invalidProperty(name, "%v is too short; a time.Duration counts nanoseconds: write %.0f*time.Second",
				time.Duration(n+0.5), n)
		}
		return check(name, s)
	}
	k.json = func(s Seconds) any {
		if s == Forever {
			return infinite
		}
		return s.Std().Seconds() // exact to the microsecond
	}
	k.parseJSON = func(data []byte) (Seconds, bool) {
		if string(data) == `"`+infinite+`"` {
			return Forever, b.inf
		}
		return k.parse(string(data))
	}
	return k
}

// text is the kind of a text that is its own value. An invalid text is stored all the same, so that a user sees it.
func text(want string, check func(name, s string) error) kind[string, string] {
	return textual(want, check, func(string) bool { return true })
}

func textual[T ~string](want string, check func(name string, s T) error, valid func(T) bool) kind[T, T] {
	return kind[T, T]{
		want: want, check: check, public: same[T], stored: same[T],
		parse:  func(s string) (T, bool) { return T(s), valid(T(s)) },
		format: func(s T) string { return string(s) },
		parseJSON: func(data []byte) (T, bool) {
			var s JSONText
			err := s.UnmarshalJSON(data)
			return T(s), err == nil && valid(T(s))
		},
		json: func(s T) any {
			if utf8.ValidString(string(s)) {
				return string(s)
			}
			return JSONText(s)
		},
		isZero: func(s T) bool { return s == "" },
		equal:  func(a, b T) bool { return a == b },
	}
}

// label is the kind of a name that is part of a task's place. An invalid name is not stored, because no claim would
// find the place.
func label() kind[string, string] {
	k := textual("the name of a queue, of letters, digits and . _ - / @", checkQueue, func(s string) bool {
		return checkQueue("", s) == nil
	})
	k.why = checkQueue
	return k
}

func choice[T ~string](allowed ...T) kind[T, T] {
	names := make([]string, len(allowed))
	for i, s := range allowed {
		names[i] = string(s)
	}
	want := "one of " + strings.Join(names, ", ")
	check := func(name string, v T) error {
		if !slices.Contains(allowed, v) {
			return invalidProperty(name, "%q is not %s", string(v), want)
		}
		return nil
	}
	return textual(want, check, func(T) bool { return true })
}

// yesOrNo is the kind of a truth value. In JSON, it is true or false.
func yesOrNo() kind[bool, bool] {
	words := map[bool]string{true: "yes", false: "no"}
	return kind[bool, bool]{
		want: "yes or no", public: same[bool], stored: same[bool],
		parse:  func(s string) (bool, bool) { return s == words[true], s == words[true] || s == words[false] },
		format: func(v bool) string { return words[v] },
		parseJSON: func(data []byte) (v, ok bool) {
			err := json.Unmarshal(data, &v)
			return v, err == nil && string(data) != "null"
		},
		json:   func(v bool) any { return v },
		isZero: func(v bool) bool { return !v },
		equal:  func(a, b bool) bool { return a == b },
		check:  func(string, bool) error { return nil },
	}
}

func tags() kind[[]string, []string] {
	return list(fmt.Sprintf("up to %d tags, separated by commas", MaxTags), checkTags, JoinTags)
}

// list is the kind of a list of texts without commas.
func list(want string, check func(name string, all []string) error, join func([]string) string) kind[[]string,
	[]string] {
	valid := func(all []string) bool { return check("", all) == nil }
	return kind[[]string, []string]{
		want: want, check: check, public: same[[]string], stored: same[[]string], format: join,
		equal: slices.Equal[[]string],
		why:   func(name, text string) error { return check(name, SplitTags(text)) },
		parse: func(s string) ([]string, bool) {
			all := SplitTags(s)
			return all, valid(all)
		},
		parseJSON: func(data []byte) (all []string, ok bool) {
			err := json.Unmarshal(data, &all)
			return all, err == nil && valid(all)
		},
		json:   func(all []string) any { return append([]string{}, all...) }, // an empty list, not null
		isZero: func(all []string) bool { return all == nil },
	}
}

// resources is the kind of a request for resources. As of a label, an invalid text is not stored.
func resources() kind[string, string] {
	k := textual("amounts of resources, such as cpus=4 memory=2G, or alternatives with or", checkRequest,
		func(s string) bool { return checkRequest("", s) == nil })
	k.why = checkRequest
	k.parse = canonicalRequest
	k.stored = func(s string) string {
		text, ok := canonicalRequest(s)
		if !ok {
			return s // the check refuses it
		}
		return text
	}
	parseJSON := k.parseJSON
	k.parseJSON = func(data []byte) (string, bool) {
		s, ok := parseJSON(data)
		return k.stored(s), ok
	}
	return k
}

// maxMinTime is the largest min_time, a year.
const maxMinTime = Seconds(365 * 24 * 60 * 60)

var nameWant = fmt.Sprintf("a name of up to %d bytes", MaxName)
