// Package format writes numbers, times, states and texts for people, for the command tdf and the dashboard.
package format

import (
	"fmt"
	"strconv"
	"time"

	"github.com/tdf-framework/tdf/manager"
)

// Number formats a number for a table.
func Number[N int | int64](n N) string { return strconv.FormatInt(int64(n), 10) }

// Counted formats a number with its noun: "1 task", "2 tasks".
func Counted[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Number(n) + " " + noun
}

// Span formats a duration for people, rounded to one unit: 98s, 3m, 5h, 4d.
func Span(d time.Duration) string {
	switch s := d.Seconds(); {
	case s < 0:
		return "0s"
	case s < 100:
		return fmt.Sprintf("%.0fs", s)
	case s < 100*60:
		return fmt.Sprintf("%.0fm", s/60)
	case s < 72*3600:
		return fmt.Sprintf("%.0fh", s/3600)
	default:
		return fmt.Sprintf("%.0fd", s/86400)
	}
}

// Left writes an estimate of the time left, as a range.
func Left(low, high time.Duration) string {
	least, most := Span(low), Span(high)
	if least == most {
		return least + " left"
	}
	return least + " to " + most + " left"
}

// Seconds formats a run time in seconds, with two decimals below 10 s. It returns "" for 0.
func Seconds(d time.Duration) string {
	switch s := d.Seconds(); {
	case s <= 0:
		return ""
	case s < 10:
		return strconv.FormatFloat(s, 'f', 2, 64)
	default:
		return strconv.FormatFloat(s, 'f', 0, 64)
	}
}

// Elapsed formats a measured duration for people: with two decimals below 10 s, and otherwise as Span does.
func Elapsed(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.2fs", max(d, 0).Seconds())
	}
	return Span(d)
}

// PerSecond formats a rate with three digits.
func PerSecond(rate float64) string { return fmt.Sprintf("%.3g", rate) }

// Size formats a number of bytes for people: "196 bytes", "1.23 kB".
func Size(bytes int64) string {
	const units = "kMGTPE"
	if bytes < 1000 {
		return Counted(bytes, "byte")
	}
	f, unit := float64(bytes), -1
	for f >= 999.5 {
		f /= 1000
		unit++
	}
	return fmt.Sprintf("%.3g %cB", f, units[unit])
}

func Tasks[N int | int64](n N) string { return Counted(n, "task") }

// StateText returns the state of a task. If the outcome differs from the state, the text contains the outcome, too. It
// marks tasks that wait for others or for a limit.
func StateText(t *manager.Task) string {
	switch {
	case t.Waits:
		return string(t.State) + " (waits for tasks)"
	case t.WaitsForLimit:
		return string(t.State) + " (waits for a limit)"
	}
	if t.Outcome == "" || t.Outcome == string(t.State) {
		return OneLine(string(t.State), 0)
	}
	return OneLine(string(t.State)+" ("+t.Outcome+")", 0)
}
