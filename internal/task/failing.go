package task

import (
	"strconv"
	"strings"
)

// A FailingSource is a source that workers could not start since it last started (docs/lifecycle.md, "Held programs").
type FailingSource struct {
	Name        string // see [Properties.SourceName]
	Program     string
	Why         string   // why the last start failed
	Workers     []string // up to three that could not start it
	Failures    int
	Since, Last Time // when the failures or the hold began, and the last failure or trial
}

// ParseFailing reads an entry of the hash `failing`. Without a valid entry, only the name is known.
func ParseFailing(name, entry string) FailingSource {
	lines := strings.Split(entry, "\n")
	numbers := strings.Fields(lines[0])
	if len(lines) < 4 || len(numbers) < 3 {
		return FailingSource{Name: name}
	}
	f := FailingSource{Name: name, Program: lines[1], Why: lines[2], Workers: lines[3:]}
	f.Since, _ = ParseTime(numbers[0])
	f.Last, _ = ParseTime(numbers[1])
	if len(numbers) > 3 {
		tried, _ := ParseTime(numbers[3])
		f.Last = max(f.Last, tried)
	}
	f.Failures, _ = strconv.Atoi(numbers[2])
	return f
}

// A held source is tried after a second, then after twice as long each time, up to a minute (unhold.lua).
const firstTrial, longestTrialPause = Seconds(1), Seconds(60)

// NextTrial returns the time from which the server lets a task try the held source.
func (f *FailingSource) NextTrial() Time {
	return f.Last.Add(min(max(f.Last.Sub(f.Since), firstTrial), longestTrialPause))
}
