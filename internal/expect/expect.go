// Package expect contains checks that many tests use. The optional last arguments of a check say what it is about; a
// failure prints them before the values.
package expect

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// longestPause is the longest time between two calls of a condition. It limits the work of tests that wait long,
// because many conditions ask Redis.
const longestPause = 20 * time.Millisecond

// atLast is the time between the end of a wait and the end of go test -timeout, so that the failure can still be
// printed.
const atLast = 10 * time.Second

// started is when this process began.
var started = time.Now()

// deadline returns when go test would end this process, less atLast. Without go test -timeout, it returns false.
func deadline() (time.Time, bool) {
	f := flag.Lookup("test.timeout")
	if f == nil {
		return time.Time{}, false
	}
	timeout := f.Value.(flag.Getter).Get().(time.Duration)
	return started.Add(timeout - atLast), timeout > 0
}

// Eventually waits until ok returns true. It calls ok after a millisecond, and then less and less often. It has no
// limit of its own, because any process may pause for long on a busy machine. Shortly before go test -timeout would end
// all tests, it ends this one with an error that contains the text state, and what the functions in seen return.
func Eventually(t testing.TB, state string, ok func() bool, seen ...func() any) {
	t.Helper()
	limit, limited := deadline()
	for pause := time.Millisecond; !ok(); pause = min(pause*5/4, longestPause) {
		if limited && time.Now().After(limit) {
			t.Fatal("timed out waiting for: " + state + last(seen))
		}
		time.Sleep(pause)
	}
}

// last returns what a test saw last.
func last(seen []func() any) string {
	var b strings.Builder
	for _, f := range seen {
		b.WriteString("; last seen: " + text(f()))
	}
	return b.String()
}

// NoError ends the test if err is not nil.
func NoError(t testing.TB, err error, about ...any) {
	t.Helper()
	if err != nil {
		t.Fatal(prefix(about) + err.Error())
	}
}

// Equal checks that got is want. Empty slices are equal, also if one of them is nil.
func Equal[T any](t testing.TB, got, want T, about ...any) {
	t.Helper()
	if !equal(got, want) {
		t.Error(prefix(about) + difference(got, want))
	}
}

// MustEqual is like Equal, but a difference ends the test.
func MustEqual[T any](t testing.TB, got, want T, about ...any) {
	t.Helper()
	if !equal(got, want) {
		t.Fatal(prefix(about) + difference(got, want))
	}
}

// True checks that a condition holds. A failure prints only the last arguments, so they say what is wrong.
func True(t testing.TB, ok bool, about ...any) {
	t.Helper()
	if !ok {
		t.Error(prefix(about) + "not as wanted")
	}
}

// MustTrue is like True, but ends the test.
func MustTrue(t testing.TB, ok bool, about ...any) {
	t.Helper()
	if !ok {
		t.Fatal(prefix(about) + "not as wanted")
	}
}

// Len checks the length of a slice, a map or a string.
func Len(t testing.TB, got any, want int, about ...any) {
	t.Helper()
	if n := reflect.ValueOf(got).Len(); n != want {
		t.Errorf("%sgot %d elements, want %d: %s", prefix(about), n, want, text(got))
	}
}

// MustLen is like Len, but another length ends the test.
func MustLen(t testing.TB, got any, want int, about ...any) {
	t.Helper()
	if n := reflect.ValueOf(got).Len(); n != want {
		t.Fatalf("%sgot %d elements, want %d: %s", prefix(about), n, want, text(got))
	}
}

// NotEqual checks that got is another value than unwanted.
func NotEqual[T any](t testing.TB, got, unwanted T, about ...any) {
	t.Helper()
	if equal(got, unwanted) {
		t.Errorf("%sgot %s, want another value", prefix(about), text(got))
	}
}

// OneOf checks that got is one of the wanted values.
func OneOf[T comparable](t testing.TB, got T, wanted ...T) {
	t.Helper()
	if !slices.Contains(wanted, got) {
		t.Errorf("got %s, want one of %s", text(got), text(wanted))
	}
}

// Compare checks that got is <, <=, > or >= limit.
func Compare[T cmp.Ordered](t testing.TB, got T, operator string, limit T, about ...any) {
	t.Helper()
	order := cmp.Compare(got, limit)
	if holds := map[string]bool{"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}; !holds[operator] {
		t.Errorf("%sgot %s, want %s %s", prefix(about), text(got), operator, text(limit))
	}
}

// Contains checks that a text contains a part.
func Contains(t testing.TB, got, part string, about ...any) {
	t.Helper()
	if !strings.Contains(got, part) {
		t.Errorf("%sgot %s, want a text with %q", prefix(about), text(got), part)
	}
}

// NotContains checks that a text does not contain a part.
func NotContains(t testing.TB, got, part string, about ...any) {
	t.Helper()
	if strings.Contains(got, part) {
		t.Errorf("%sgot %s, want a text without %q", prefix(about), text(got), part)
	}
}

// Fails checks that err is an error whose text contains a part. With "", any error will do.
func Fails(t testing.TB, err error, part string, about ...any) {
	t.Helper()
	switch {
	case err == nil:
		t.Errorf("%sgot no error", prefix(about))
	case !strings.Contains(err.Error(), part):
		t.Errorf("%sgot error %v, want one with %q", prefix(about), err, part)
	}
}

// FailsWith checks that err is or wraps an error.
func FailsWith(t testing.TB, err, target error, about ...any) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%sgot error %v, want %v", prefix(about), err, target)
	}
}

// A Returned is what a function has returned: a value and an error.
type Returned[T any] struct {
	value T
	err   error
}

// Result makes a Returned of the two results of a call.
func Result[T any](value T, err error) Returned[T] { return Returned[T]{value, err} }

// Value returns the value. It ends the test if the call returned an error.
func (r Returned[T]) Value(t testing.TB, about ...any) T {
	t.Helper()
	NoError(t, r.err, about...)
	return r.value
}

// OK ends the test if the call returned an error.
func (r Returned[T]) OK(t testing.TB, about ...any) {
	t.Helper()
	NoError(t, r.err, about...)
}

// Is checks that the call returned want and no error.
func (r Returned[T]) Is(t testing.TB, want T, about ...any) {
	t.Helper()
	if r.err != nil || !equal(r.value, want) {
		t.Errorf("%s%s, error %v", prefix(about), difference(r.value, want), r.err)
	}
}

// Fails checks that the call returned an error, as the function Fails does.
func (r Returned[T]) Fails(t testing.TB, part string, about ...any) {
	t.Helper()
	Fails(t, r.err, part, append(about, "returned", text(r.value))...)
}

// FailsWith checks that the call returned this error, as the function FailsWith does.
func (r Returned[T]) FailsWith(t testing.TB, target error, about ...any) {
	t.Helper()
	FailsWith(t, r.err, target, append(about, "returned", text(r.value))...)
}

func equal(got, want any) bool {
	if reflect.DeepEqual(got, want) {
		return true
	}
	a, b := reflect.ValueOf(got), reflect.ValueOf(want)
	return a.Kind() == reflect.Slice && b.Kind() == reflect.Slice && a.Len()+b.Len() == 0
}

func prefix(about []any) string {
	if len(about) == 0 {
		return ""
	}
	return strings.TrimSuffix(fmt.Sprintln(formatted(about)...), "\n") + ": "
}

// formatted returns structures as texts with the names of their fields, and shortens texts.
func formatted(about []any) []any {
	all := make([]any, len(about))
	for i, a := range about {
		all[i] = short(fmt.Sprintf("%+v", a))
	}
	return all
}

func difference(got, want any) string {
	a, b := text(got), text(want)
	if strings.Contains(a+b, "\n") {
		return "got\n" + a + "\nwant\n" + b
	}
	return "got " + a + ", want " + b
}

// text returns a value as a text of at most 8,000 bytes. A string of one line is in quotes.
func text(v any) string {
	s, ok := v.(string)
	switch {
	case !ok:
		s = fmt.Sprintf("%+v", v)
	case !strings.Contains(s, "\n"):
		s = strconv.Quote(s)
	}
	return short(s)
}

func short(s string) string {
	if len(s) > 8000 {
		s = s[:8000] + "…"
	}
	return s
}
