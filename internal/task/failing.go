package task

import (
	"fmt"
	"slices"
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
	Since, Last Time // when the failures or the hold began, and the last failure
	Tried       Time // when a task last returned to try the held source, or 0
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
	f.Failures, _ = strconv.Atoi(numbers[2])
	if len(numbers) > 3 {
		f.Tried, _ = ParseTime(numbers[3])
	}
	return f
}

// String returns the entry of the hash.
func (f *FailingSource) String() string {
	head := fmt.Sprintf("%v %v %d %v\n%s\n%s\n", f.Since, f.Last, f.Failures, max(f.Since, f.Tried), f.Program, f.Why)
	return head + strings.Join(f.Workers, "\n")
}

// Failures that are this far apart do not count together, unless the source is held.
const failuresApart = Seconds(600)

const failingWorkers = 3 // the largest number of names in an entry

// Fail notes that a worker could not start the source.
func (f *FailingSource) Fail(now Time, worker string, held bool) {
	if f.Failures == 0 || !held && now.Sub(f.Last) > failuresApart {
		f.Since, f.Failures, f.Workers = now, 0, nil
	}
	others := slices.DeleteFunc(f.Workers, func(name string) bool { return name == worker })
	f.Workers = append([]string{worker}, others[:min(len(others), failingWorkers-1)]...)
	f.Failures, f.Last = f.Failures+1, now
}

// MustBeHeld reports whether two workers could not start the source, or one that is alone could not start it three
// times.
func (f *FailingSource) MustBeHeld(alone bool) bool {
	return len(f.Workers) > 1 || alone && f.Failures >= 3
}

// A held source is tried after a second, then after twice as long each time, up to a minute (unhold.lua).
const firstTrial, longestTrialPause = Seconds(1), Seconds(60)

// NextTrial returns the time from which the server lets a task try the held source.
func (f *FailingSource) NextTrial() Time {
	tried := max(f.Since, f.Tried)
	return tried.Add(min(max(tried.Sub(f.Since), firstTrial), longestTrialPause))
}
