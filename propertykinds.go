package tdf

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// property makes a row for a property of any type. The argument parse returns false for an invalid text, and check an error for
// an invalid value. A property without an accessor for [Changes] cannot change.
func property[T any](
	name, meaning string, original bool, at func(*Properties) *T, in func(*Changes) *T, want string,
	parse func(string) (T, bool), format func(T) string, equal func(a, b T) bool, check func(name string, v T) error,
) Property {
	return Property{
		Name: name, Want: want, Meaning: meaning, original: original,
		read: func(d *Properties, text string) bool {
			v, ok := parse(text)
			if ok {
				*at(d) = v
			}
			return ok
		},
		text:    func(d *Properties) string { return format(*at(d)) },
		isUsual: func(d *Properties) bool { return equal(*at(d), *at(&usual)) },
		check:   func(d *Properties) error { return check(name, *at(d)) },
		change: func(d *Properties, c *Changes) {
			if in != nil && in(c) != nil {
				*at(d) = *in(c)
			}
		},
	}
}

// numeric makes a row for a property whose values lie between bounds. A text outside of them is invalid, so that the property keeps
// its default.
func numeric[T cmp.Ordered](
	name, meaning string, original bool, at func(*Properties) *T, in func(*Changes) *T, want string,
	parse func(string) (T, error), format func(T) string, valid func(T) bool,
) Property {
	read := func(text string) (T, bool) {
		v, err := parse(text)
		return v, err == nil && valid(v)
	}
	check := func(name string, v T) error {
		if !valid(v) {
			return invalidProperty(name, "%v is not %s", v, want)
		}
		return nil
	}
	return property(name, meaning, original, at, in, want, read, format, func(a, b T) bool { return a == b }, check)
}

func count(name, meaning string, original bool, at func(*Properties) *int, in func(*Changes) *int, low, high int) Property {
	return numeric(name, meaning, original, at, in, fmt.Sprintf("a whole number from %d to %d", low, high), strconv.Atoi, strconv.Itoa,
		func(n int) bool { return low <= n && n <= high })
}

func number(name, meaning string, original bool, at func(*Properties) *float64, in func(*Changes) *float64, low, high float64) Property {
	parse := func(s string) (float64, error) {
		v, err := ParseSeconds(s) // no hexadecimal numbers
		return float64(v), err
	}
	return numeric(name, meaning, original, at, in, fmt.Sprintf("a number from %v to %v", low, high), parse, formatFloat,
		func(v float64) bool { return low <= v && v <= high })
}

// bounds are the bounds of a time or a span in seconds.
type bounds struct {
	above, inf bool    // whether it must be above 0; whether it may be infinite
	most       Seconds // if above 0, the largest span
}

func (b bounds) allow(v float64) bool {
	switch {
	case !validSeconds(v), b.above && v < float64(leastSeconds), b.most > 0 && v > float64(b.most):
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

func moment(name, meaning string, original bool, at func(*Properties) *Time, in func(*Changes) *Time, b bounds) Property {
	p := numeric(name, meaning, original, at, in, b.want("a Unix time in seconds", " from 0 up"), ParseTime, Time.String,
		func(t Time) bool { return b.allow(float64(t)) })
	p.isTime = true
	return p
}

func span(name, meaning string, original bool, at func(*Properties) *Seconds, in func(*Changes) *Seconds, b bounds) Property {
	p := numeric(name, meaning, original, at, in, b.want("a number of seconds", " from 0 up"), ParseSeconds, Seconds.String,
		func(s Seconds) bool { return b.allow(float64(s)) })
	p.isTime = true
	return p
}

// text makes a row for a property whose text is its value. An invalid text is stored all the same, so that a user sees it.
func text(
	name, meaning string, original bool, at func(*Properties) *string, in func(*Changes) *string, want string, check func(name, s string) error,
) Property {
	return property(name, meaning, original, at, in, want, func(s string) (string, bool) { return s, true }, func(s string) string { return s },
		func(a, b string) bool { return a == b }, check)
}

// label makes a row for a name that is part of a task's place. An invalid name is not stored, because no claim would find the place.
func label(name, meaning string, original bool, at func(*Properties) *string, in func(*Changes) *string) Property {
	parse := func(s string) (string, bool) { return s, checkQueue(name, s) == nil }
	return property(name, meaning, original, at, in, "the name of a queue, of letters, digits and . _ - / @", parse,
		func(s string) string { return s }, func(a, b string) bool { return a == b }, checkQueue)
}

func choice[T ~string](name, meaning string, original bool, at func(*Properties) *T, in func(*Changes) *T, allowed ...T) Property {
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
	return property(name, meaning, original, at, in, want, func(s string) (T, bool) { return T(s), true }, func(v T) string { return string(v) },
		func(a, b T) bool { return a == b }, check)
}

func tags(name, meaning string, original bool, at func(*Properties) *[]string, in func(*Changes) *[]string) Property {
	want := fmt.Sprintf("up to %d tags of letters, digits and . _ - / @, separated by blanks or commas", MaxTags)
	parse := func(s string) ([]string, bool) {
		all := SplitTags(s)
		return all, checkTags(name, all) == nil
	}
	return property(name, meaning, original, at, in, want, parse, JoinTags, slices.Equal[[]string], checkTags)
}

var nameWant = fmt.Sprintf("a name of up to %d bytes", MaxName)
