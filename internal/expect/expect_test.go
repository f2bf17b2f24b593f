package expect

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A record is a test that only notes its first failure. As with the real one, Fatal ends the goroutine.
type record struct {
	testing.TB
	failure string
	ended   bool
}

func (r *record) Helper() {}

func (r *record) Error(args ...any)                 { r.failure = fmt.Sprint(args...) }
func (r *record) Errorf(format string, args ...any) { r.failure = fmt.Sprintf(format, args...) }
func (r *record) Fatal(args ...any)                 { r.Error(args...); r.end() }
func (r *record) Fatalf(format string, args ...any) { r.Errorf(format, args...); r.end() }
func (r *record) end()                              { r.ended = true; runtime.Goexit() }

// A late test has reached the time limit of go test.
type late struct{ testing.TB }

func (late) Deadline() (time.Time, bool) { return time.Now(), true }

func call(n int, err error) Returned[int] { return Result(n, err) }

func TestChecks(t *testing.T) {
	wrapped := fmt.Errorf("read x: %w", io.EOF)
	for name, c := range map[string]struct {
		check func(t testing.TB)
		want  string // the failure; "" if the check passes. A ! before it means that the check ends the test
	}{
		"equal":                {func(t testing.TB) { Equal(t, []int{1}, []int{1}) }, ""},
		"empty":                {func(t testing.TB) { Equal(t, []int{}, nil) }, ""},
		"different":            {func(t testing.TB) { Equal(t, "a", "b", "name", 7) }, `name 7: got "a", want "b"`},
		"different lines":      {func(t testing.TB) { Equal(t, "a\nb", "c") }, "got\na\nb\nwant\n\"c\""},
		"not empty":            {func(t testing.TB) { Equal(t, []int{0}, nil) }, "got [0], want []"},
		"must be equal":        {func(t testing.TB) { MustEqual(t, 1, 2) }, "!got 1, want 2"},
		"true":                 {func(t testing.TB) { True(t, true, "x") }, ""},
		"not true":             {func(t testing.TB) { True(t, false, "x", struct{ A int }{1}, nil) }, "x {A:1} <nil>: not as wanted"},
		"must be true":         {func(t testing.TB) { MustTrue(t, false) }, "!not as wanted"},
		"eventually":           {func(t testing.TB) { n := 0; Eventually(t, "x", func() bool { n++; return n == 3 }) }, ""},
		"never":                {func(t testing.TB) { Eventually(late{t}, "x", func() bool { return false }) }, "!timed out waiting for: x"},
		"length":               {func(t testing.TB) { Len(t, map[int]int{1: 2}, 1) }, ""},
		"another length":       {func(t testing.TB) { Len(t, "ab", 1) }, `got 2 elements, want 1: "ab"`},
		"must have a length":   {func(t testing.TB) { MustLen(t, []int{7}, 0, "x") }, "!x: got 1 elements, want 0: [7]"},
		"part":                 {func(t testing.TB) { Contains(t, "abc", "b") }, ""},
		"no part":              {func(t testing.TB) { Contains(t, "abc", "d") }, `got "abc", want a text with "d"`},
		"no error":             {func(t testing.TB) { NoError(t, nil) }, ""},
		"an error":             {func(t testing.TB) { NoError(t, io.EOF, "x") }, "!x: EOF"},
		"fails":                {func(t testing.TB) { Fails(t, wrapped, "read x") }, ""},
		"does not fail":        {func(t testing.TB) { Fails(t, nil, "") }, "got no error"},
		"fails otherwise":      {func(t testing.TB) { Fails(t, io.EOF, "read") }, `got error EOF, want one with "read"`},
		"fails with":           {func(t testing.TB) { FailsWith(t, wrapped, io.EOF) }, ""},
		"fails with another":   {func(t testing.TB) { FailsWith(t, io.EOF, errors.ErrUnsupported) }, "got error EOF, want unsupported operation"},
		"value":                {func(t testing.TB) { Equal(t, call(3, nil).Value(t), 3) }, ""},
		"no value":             {func(t testing.TB) { call(3, io.EOF).Value(t, "x") }, "!x: EOF"},
		"not OK":               {func(t testing.TB) { call(3, io.EOF).OK(t) }, "!EOF"},
		"is":                   {func(t testing.TB) { call(3, nil).Is(t, 3) }, ""},
		"is another":           {func(t testing.TB) { call(3, nil).Is(t, 4) }, "got 3, want 4, error <nil>"},
		"is with an error":     {func(t testing.TB) { call(3, io.EOF).Is(t, 3) }, "got 3, want 3, error EOF"},
		"call fails":           {func(t testing.TB) { call(0, wrapped).Fails(t, "read x") }, ""},
		"call does not fail":   {func(t testing.TB) { call(3, nil).Fails(t, "", "x") }, "x returned 3: got no error"},
		"call fails with":      {func(t testing.TB) { call(0, wrapped).FailsWith(t, io.EOF) }, ""},
		"call fails otherwise": {func(t testing.TB) { call(0, nil).FailsWith(t, io.EOF) }, "returned 0: got error <nil>, want EOF"},
	} {
		r := &record{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.check(r)
		}()
		<-done
		want, ends := strings.CutPrefix(c.want, "!")
		if r.failure != want || r.ended != ends {
			t.Errorf("%s: got failure %q, want %q; ended: %v", name, r.failure, want, r.ended)
		}
	}
}
