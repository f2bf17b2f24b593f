package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/counts"
)

// A History has the counts of the last hour and of the last day (docs/metrics.md, "History").
type History struct {
	Hour Period `json:"last_hour"`
	Day  Period `json:"last_day"`
}

// A Period has the counts of a span of time that ends now.
type Period struct {
	// later than the start of the span if there are no older counts; zero if there are none
	Since     time.Time   `json:"since" as:"unix"`
	Succeeded int64       `json:"succeeded"`   // tasks that succeeded
	Failed    int64       `json:"failed"`      // tasks that failed, timed out, expired or were cancelled
	Run       Percentiles `json:"run_seconds"` // of the run times of programs and handlers
	// of the time from the moment when a task could first be claimed to its first claim
	Wait  Percentiles `json:"wait_seconds"`
	Steps []Interval  `json:"-"` // the parts of the period, the oldest first
}

// Percentiles are estimates from a histogram.
type Percentiles struct {
	N   int64         `json:"n"`   // number of measured times; if it is 0, so are the percentiles
	P50 time.Duration `json:"p50"` // half of the times are as long or shorter
	P90 time.Duration `json:"p90"`
	P99 time.Duration `json:"p99"`
}

// An Interval is the part of a period between two counts.
type Interval struct {
	From, To          time.Time
	Succeeded, Failed int64
	Gap               bool // no server ran for a part of the time
}

// PerMinute returns how many tasks ended a minute.
func (s Interval) PerMinute() (succeeded, failed float64) {
	minutes := max(s.To.Sub(s.From).Minutes(), 1e-3)
	return float64(s.Succeeded) / minutes, float64(s.Failed) / minutes
}

// Total returns how many tasks ended.
func (p Period) Total() int64 { return p.Succeeded + p.Failed }

// History reads the counts of the last hour and the last day.
func (a *Admin) History(ctx context.Context) (History, error) {
	h, err := readHistory(ctx, a.redis())
	if err != nil {
		err = fmt.Errorf("read the history: %w", err)
	}
	return h, err
}

func readHistory(ctx context.Context, s *redisstate.Store) (h History, err error) {
	now, err := s.Now(ctx)
	if err != nil {
		return h, err
	}
	hour, err := s.Counters.History(ctx, counts.HistoryHour, now)
	if err != nil {
		return h, err
	}
	day, err := s.Counters.History(ctx, counts.HistoryDay, now)
	if err != nil {
		return h, err
	}
	present, err := s.Counters.PresentHistory(ctx, now)
	return History{periodOf(counts.HistoryHour, hour, present), periodOf(counts.HistoryDay, day, present)}, err
}

// periodOf returns the counts between the first of the entries and the present.
func periodOf(span counts.HistorySpan, entries []counts.HistoryEntry,
	present counts.HistoryEntry,
) (p Period) {
	all := counts.Activity{Counts: map[string]int64{}}
	for i, earlier := range entries {
		later := present
		if i+1 < len(entries) {
			later = entries[i+1]
		}
		counted := later.Since(earlier)
		step := Interval{From: earlier.At.Std(), To: later.At.Std(), Gap: later.At.Sub(earlier.At) >= span.Step*3/2}
		step.Succeeded, step.Failed = ended(&counted)
		p.Steps = append(p.Steps, step)
		for name, n := range counted.Counts {
			all.Counts[name] += n
		}
	}
	if len(entries) > 0 {
		p.Since = entries[0].At.Std()
	}
	p.Succeeded, p.Failed = ended(&all)
	p.Run, p.Wait = percentilesOf(&all, counts.CountRun), percentilesOf(&all, counts.CountWait)
	return p
}

// ended returns how many tasks succeeded, and how many ended in another way.
func ended(a *counts.Activity) (succeeded, failed int64) {
	a.Transitions(func(_ rules.Verb, to task.State, n int64) {
		if to == task.Succeeded {
			succeeded += n
		} else {
			failed += n
		}
	})
	return succeeded, failed
}

func percentilesOf(a *counts.Activity, kind string) Percentiles {
	upTo, _ := a.Spans(kind)
	n := int64(upTo[len(upTo)-1])
	of := func(share float64) time.Duration { return percentile(upTo, share*float64(n)) }
	return Percentiles{n, of(0.5), of(0.9), of(0.99)}
}

// percentile returns the time that as many times as rank do not exceed. It assumes that the times of a part of the
// histogram are evenly distributed. The longest times have no bound, so it returns the bound below them.
func percentile(upTo []uint64, rank float64) time.Duration {
	below, n := task.Seconds(0), 0.0
	for i, bound := range counts.SpanBounds() {
		more := float64(upTo[i])
		switch {
		case rank <= 0 || bound == task.Forever:
			return below.Std()
		case more >= rank:
			return (below + (bound-below)*task.Seconds((rank-n)/(more-n))).Std()
		}
		below, n = bound, more
	}
	return below.Std()
}
