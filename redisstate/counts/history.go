package counts

import (
	"context"
	"encoding/json"
	"math"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A HistorySpan is a span of time for which Redis has entries of a namespace's counts (docs/metrics.md, "History").
type HistorySpan struct {
	Step  task.Seconds // between two entries
	Steps int
}

// The two spans of the history.
var (
	HistoryHour = HistorySpan{60, 60}
	HistoryDay  = HistorySpan{900, 96}
)

// step returns the number of the step in which a time is. Each step has one entry.
func (h HistorySpan) step(at task.Time) int64 {
	return int64(math.Floor(float64(at) / float64(h.Step)))
}

// A HistoryEntry has what the namespace had counted of all queues together at one time.
type HistoryEntry struct {
	At     task.Time        `json:"at"`
	Counts map[string]int64 `json:"counts"` // those of historyNames that are not 0
}

// historyNames are the names of the counts of the history.
var historyNames = namesOfHistory()

func namesOfHistory() (names []string) {
	for _, t := range rules.Transitions {
		if t.To.Settled() {
			names = append(names, TransitionName(t.Verb, t.To))
		}
	}
	for _, kind := range []string{CountRun, CountWait} {
		names = append(names, spanNames[kind].upTo...)
	}
	return names
}

// PresentHistory returns an entry with the present counts, which it does not store.
func (s *Counters) PresentHistory(ctx context.Context, now task.Time) (HistoryEntry, error) {
	all, err := s.Activity(ctx, &ActivityCounter{}, 0)
	e := HistoryEntry{At: now, Counts: map[string]int64{}}
	for _, a := range all {
		for _, name := range historyNames {
			if n := a.Counts[name]; n > 0 {
				e.Counts[name] = n
			}
		}
	}
	return e, err
}

// KeepHistory stores the entries of the present steps, if no server has stored them. Only the first entry of a step
// counts, so the call may be repeated. Each entry expires by itself when its span is over.
func (s *Counters) KeepHistory(ctx context.Context, now task.Time) error {
	spans := []HistorySpan{HistoryHour, HistoryDay}
	exist, err := conn.AskEach(ctx, s.Conn, "look for the history", spans,
		func(p redis.Pipeliner, h HistorySpan) *redis.IntCmd {
			return p.Exists(ctx, s.historyKey(h, h.step(now)))
		})
	if err != nil || exist[0].Val() > 0 && exist[1].Val() > 0 {
		return err
	}
	entry, err := s.PresentHistory(ctx, now)
	if err != nil {
		return err
	}
	text, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	return s.Conn.BestEffort(ctx, "store the history", func(p redis.Pipeliner) {
		for _, h := range spans {
			keep := (task.Seconds(h.Steps+2) * h.Step).Std()
			p.SetNX(ctx, s.historyKey(h, h.step(now)), text, keep)
		}
	})
}

func (s *Counters) historyKey(h HistorySpan, step int64) string {
	return s.Conn.Keys.History(int64(h.Step), step)
}

// History returns the entries of a span that ends now, the oldest first. A step in which no server ran has no entry. It
// skips values that are no entries of their steps, because another program has written them.
func (s *Counters) History(ctx context.Context, h HistorySpan, now task.Time) (entries []HistoryEntry, err error) {
	var names []string
	first := h.step(now) - int64(h.Steps)
	for i := range h.Steps + 1 {
		names = append(names, s.historyKey(h, first+int64(i)))
	}
	values, err := conn.Ask(ctx, s.Conn, "read the history", func(r redis.Cmdable) *redis.SliceCmd {
		return r.MGet(ctx, names...)
	})
	for i, value := range values {
		var e HistoryEntry
		text := conn.Text(value)
		if json.Unmarshal([]byte(text), &e) == nil && h.step(e.At) == first+int64(i) && e.At <= now {
			entries = append(entries, e)
		}
	}
	return entries, err
}

// Since returns what was counted between an earlier entry and this one. If counts became smaller, because those of a
// queue have expired, it returns 0 for them.
func (e HistoryEntry) Since(earlier HistoryEntry) Activity {
	a := Activity{Queue: OtherQueues, Counts: map[string]int64{}}
	for _, name := range historyNames {
		if from := max(earlier.Counts[name], 0); e.Counts[name] > from {
			a.Counts[name] = e.Counts[name] - from
		}
	}
	return a
}
