package selection

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

func TestIDs(t *testing.T) {
	for text, want := range map[string]string{
		"7":         "[7] <nil>",
		"12-14":     "[12 13 14] <nil>",
		"5-5":       "[5] <nil>",
		"0":         `[] invalid id "0": want a number, or a range such as 12-40`,
		"seven":     `[] invalid id "seven": want a number, or a range such as 12-40`,
		"9-8":       `[] invalid id "9-8": want a number, or a range such as 12-40`,
		"1-2-3":     `[] invalid id "1-2-3": want a number, or a range such as 12-40`,
		"-1":        `[] invalid id "-1": want a number, or a range such as 12-40`,
		"1-1000001": `[] invalid range "1-1000001": want at most 1000000 ids in all`,
		fmt.Sprintf("%d-%[1]d", int64(math.MaxInt64)): "[9223372036854775807] <nil>",
	} {
		ids, err := IDs([]string{text})
		expect.Equal(t, fmt.Sprint(ids, err), want, text)
	}
	expect.Result(IDs([]string{"1-600000", "1-400001"})).Fails(t, `invalid range "1-400001": want at most 1000000 ids in all`)
}

func TestTime(t *testing.T) {
	const now = task.Time(1000)
	for text, want := range map[string]string{
		"90": "90 <nil>", "+90": "1090 <nil>", "+2h": "8200 <nil>", "+1d": "87400 <nil>", "inf": "inf <nil>", "+inf": "inf <nil>",
		"1970-01-01T00:01:00Z": "60 <nil>",
		"+soon":                `0 invalid time "+soon": want a span after the plus, such as +90s or +2h`,
		"soon":                 `0 invalid time "soon": want Unix seconds, 2030-01-31T12:00:00Z, or +2h from now`,
		"-5":                   `0 invalid time "-5": want Unix seconds, 2030-01-31T12:00:00Z, or +2h from now`,
		"1969-01-01T00:00:00Z": `0 invalid time "1969-01-01T00:00:00Z": want Unix seconds, 2030-01-31T12:00:00Z, or +2h from now`,
	} {
		at, err := Time(text, now)
		expect.Equal(t, fmt.Sprint(at, err), want, text)
	}
}

func TestSpan(t *testing.T) {
	for text, want := range map[string]string{
		"90": "90", "90s": "90", "2h30m": "9000", "7d": "604800", "0.5d": "43200", "0": "0", "inf": "inf", "100ms": "0.100000",
		"-1s": "", "-1": "", "d": "", "-1d": "", "": "", "soon": "", "1e400": "",
	} {
		s, err := Span(text)
		expect.Equal(t, err != nil, want == "")
		if err == nil {
			expect.Equal(t, s.String(), want)
		}
		if err != nil {
			expect.Equal(t, task.CodeOf(err), task.CodeInvalid)
		}
	}
}

func TestFilter(t *testing.T) {
	now := time.Unix(10_000, 0)
	f := Filter{IDs: []string{"3-4"}, States: []string{"open"}, Outcomes: []string{"cancelled"}, Group: "g", OlderThan: "1h", NewerThan: "2h"}
	q := expect.Result(f.Query(now)).Value(t)
	expect.Equal(t, fmt.Sprintf("%v %v %v %s %d %d", q.IDs, q.States, q.Outcomes, q.Group, q.Before.Unix(), q.Since.Unix()), "[3 4] [open] [cancelled] g 6400 2800")
	expect.True(t, !f.Empty(), "Empty or NeedsClock is wrong")
	expect.True(t, f.NeedsClock(), "Empty or NeedsClock is wrong")
	expect.True(t, new(Filter).Empty(), "Empty or NeedsClock is wrong")
	expect.True(t, !new(Filter).NeedsClock(), "Empty or NeedsClock is wrong")
	for want, f := range map[string]Filter{
		`invalid id "x": want a number, or a range such as 12-40`:                                          {IDs: []string{"x"}},
		`invalid outcome "open": want succeeded, failed, timed_out, expired, cancelled`:                    {Outcomes: []string{"failed", "open"}},
		`invalid older_than "soon": want seconds, or a span such as 90s or 2h30m`:                          {OlderThan: "soon"},
		`invalid newer_than "inf": want seconds, or a span such as 90s or 2h30m`:                           {NewerThan: "inf"},
		`invalid state "o": want open, running, executed, succeeded, failed, timed_out, expired, archived`: {States: []string{"o"}},
	} {
		if _, err := f.Query(now); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
