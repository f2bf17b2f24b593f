package manager

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// lastSeen is a store that returns only the time at which a server was last seen.
type lastSeen struct{ at task.Time }

func (s *lastSeen) LastServerHeartbeat(context.Context) (task.Time, error) { return s.at, nil }

func TestServerWatch(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	store := &lastSeen{}
	w := serverWatch{store: store, log: slog.New(slog.NewTextHandler(&log, nil))}
	for _, step := range []struct {
		now, last task.Time
		want      string
	}{
		{1000, 0, "no server was ever seen"},
		{1005, 0, ""},
		{1010, 1009, "a server runs again"},
		{1012, 1009, ""},
		{1019, 1009, ""},
		{1020, 900, ""}, // too soon after the last check
		{1023, 1012.9, "no server has been seen for a while"},
		{1030, 1013, ""},
		{1040, 1040, "a server runs again"},
		{1041, 1040, ""}, // too soon
		{1100, 1040, ""}, // Redis was away: the server can send its next heartbeat only now
		{1103, 1102, ""},
		{1200, 1102, ""}, // Redis was away again
		{1204, 1102, ""},
		{1208, 1102, ""},
		{1211, 1102, "no server has been seen for a while"},
		{1300, 1102, ""},
		{1400, 1102, ""},
		{1500, 1499, "a server runs again"},
		{1560, 1499, ""}, // a long round_duration
		{1620, 1499, "no server has been seen for a while"},
		{1680, 1679, "a server runs again"},
		{900, 1679, ""}, // the clock went backwards
	} {
		log.Reset()
		store.at = step.last
		expect.NoError(t, w.look(t.Context(), step.now))
		got := log.String()
		expect.Equal(t, got != "", step.want != "", step.want)
		expect.Contains(t, got, step.want)
	}
}

// A batch has at most n tasks. At most fresh of these tasks have no entry, because no earlier round has seen them.
func TestUpTo(t *testing.T) {
	t.Parallel()
	ids := make([]int64, 100)
	b := backoff{}
	for i := range ids {
		ids[i] = int64(i)
		if i < 50 {
			b[ids[i]] = &retry{}
		}
	}
	for _, c := range []struct{ n, fresh, want int }{
		{64, 1024, 64}, {200, 1024, 100}, {64, 10, 60}, {64, 0, 50}, {10, 0, 10}, {64, 14, 64}, {64, 13, 63},
	} {
		got := b.upTo(ids, c.n, c.fresh)
		expect.MustLen(t, got, c.want, "at most", c.n, "tasks, of which at most", c.fresh)
		expect.Equal(t, got[0], 0, "at most", c.n, "tasks, of which at most", c.fresh, c.want)
	}
	expect.Len(t, b.upTo(ids[50:], 64, 0), 0)
	expect.Len(t, b.upTo(nil, 64, 5), 0)
}
