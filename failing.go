package tdf

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
	Since, Last Time  // when the failures or the hold began, and the last failure
	Trial       int64 // the task that last tried it, and its round; 0 for none
	TrialRound  int
}

// ParseFailing reads an entry of the hash `failing`. It returns false if another program has written the entry.
func ParseFailing(name, entry string) (f FailingSource, ok bool) {
	lines := strings.Split(entry, "\n")
	numbers := strings.Fields(lines[0])
	if len(lines) < 4 || len(numbers) != 3 {
		return f, false
	}
	f = FailingSource{Name: name, Program: lines[1], Why: lines[2], Workers: lines[3:]}
	var err, err2, err3 error
	f.Since, err = ParseTime(numbers[0])
	f.Last, err2 = ParseTime(numbers[1])
	f.Failures, err3 = strconv.Atoi(numbers[2])
	return f, err == nil && err2 == nil && err3 == nil
}

// A held source is tried after a second, then after twice as long each time, up to a minute. Ten minutes without a
// failure end the hold: its tasks may have gone, and workers over HTTP do not say that a round has started.
const (
	firstTrial, longestTrialPause = Seconds(1), Seconds(60)
	longestHold                   = Seconds(600)
)

// Ends reports whether the hold ends, although no start is known.
func (f *FailingSource) Ends(now Time) bool { return now.Sub(f.Last) > longestHold }

// NextTrial returns the time from which the server lets a task try the held source.
func (f *FailingSource) NextTrial() Time {
	return f.Last.Add(min(max(f.Last.Sub(f.Since), firstTrial), longestTrialPause))
}

// IsTriedBy reports whether a task tries the source, and whether the task has started it.
func (f *FailingSource) IsTriedBy(t *Task) (tries, started bool) {
	switch {
	case t.ID != f.Trial || t.Round != f.TrialRound || t.SourceName() != f.Name:
		return false, false
	case t.State == Running:
		return true, t.Current().Started > 0
	}
	return t.IsTrial(), false
}
