package expect

import (
	"errors"
	"flag"
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
		"length":               {func(t testing.TB) { Len(t, map[int]int{1: 2}, 1) }, ""},
		"another length":       {func(t testing.TB) { Len(t, "ab", 1) }, `got 2 elements, want 1: "ab"`},
		"must have a length":   {func(t testing.TB) { MustLen(t, []int{7}, 0, "x") }, "!x: got 1 elements, want 0: [7]"},
		"another value":        {func(t testing.TB) { NotEqual(t, "a", "b") }, ""},
		"the same value":       {func(t testing.TB) { NotEqual(t, "a", "a", "x") }, `x: got "a", want another value`},
		"one of two":           {func(t testing.TB) { OneOf(t, 2, 1, 2) }, ""},
		"none of two":          {func(t testing.TB) { OneOf(t, 3, 1, 2) }, "got 3, want one of [1 2]"},
		"in order":             {func(t testing.TB) { Compare(t, 1, "<", 2); Compare(t, 2, ">=", 2) }, ""},
		"not in order":         {func(t testing.TB) { Compare(t, 2, "<", 2, "x") }, "x: got 2, want < 2"},
		"also not in order":    {func(t testing.TB) { Compare(t, 1, ">=", 2) }, "got 1, want >= 2"},
		"no operator":          {func(t testing.TB) { Compare(t, 1, "=", 1) }, "got 1, want = 1"},
		"absent":               {func(t testing.TB) { NotContains(t, "abc", "d") }, ""},
		"not absent":           {func(t testing.TB) { NotContains(t, "abc", "b", "x") }, `x: got "abc", want a text without "b"`},
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

// A wait ends only shortly before go test -timeout, and says what it saw.
func TestEventually(t *testing.T) {
	calls := 0
	Eventually(t, "the third call", func() bool { calls++; return calls == 3 })
	limit, limited := deadline()
	Equal(t, limited, flag.Lookup("test.timeout").Value.String() != "0s")
	began := started
	defer func() { started = began }()
	started = time.Now().Add(-time.Since(limit).Abs() - time.Hour)
	if !limited {
		return
	}
	r, done := &record{}, make(chan struct{})
	go func() {
		defer close(done)
		Eventually(r, "the end", func() bool { return false }, func() any { return calls })
	}()
	<-done
	Equal(t, r.failure, "timed out waiting for: the end; last seen: 3")
}
