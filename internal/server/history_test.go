package server

import (
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/redisstate/counts"
)

// Each round of a server keeps the history. If several servers run, or a server restarts, each step has one entry. A wrong type in
// Redis is no error of the round.
func TestServersKeepHistory(t *testing.T) {
	s := newSite(t)
	entries := func() (all []counts.HistoryEntry) {
		all = expect.Result(s.store.Counters.History(s.Context(), counts.HistoryHour, s.now())).Value(s)
		return append(all, expect.Result(s.store.Counters.History(s.Context(), counts.HistoryDay, s.now())).Value(s)...)
	}
	s.do("SET", "$activity", "wrong")
	s.round()
	expect.Equal(s, len(entries()), 0, "entries without counts")
	s.do("DEL", "$activity")
	s.do("ZADD", "$activity", 1, "default")
	s.do("HSET", "$activity:default", "made:succeed:succeeded", 3)
	start := s.now()
	s.server.keepHistory(s.Context(), start) // too early for another try
	expect.Equal(s, len(entries()), 0, "entries after an error")
	for range 2 {
		restarted := New("other", settings, s.store, quiet())
		expect.Result(restarted.RunOnce(s.Context())).OK(s)
	}
	s.server.keepHistory(s.Context(), start.Add(-60)) // the clock was set back
	all := entries()
	expect.Compare(s, 3, "<=", len(all))
	expect.Compare(s, len(all), "<=", 5) // more if a step has begun meanwhile
	for _, e := range all {
		expect.Equal(s, e.Counts["made:succeed:succeeded"], 3, "counts")
	}
}
