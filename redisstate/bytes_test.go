package redisstate_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// Logs, outputs and checkpoints are read at any length. Other properties are read only if they are short.
func TestOnlyTextsAreReadAtAnyLength(t *testing.T) {
	s := newStore(t)
	long := strings.Repeat("x", redisstate.LongestField+1)
	short := []string{"input", "meta", "source", "program", "group", "0:worker", "0:progress", "output", "logs"}
	texts := []string{"log", task.FieldCheckpoint, "0:output", "17:error", "0:tail", "0:result"}
	for _, name := range slices.Concat(short, texts) {
		must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(1), name, long).Err())
	}
	names, read := slices.Concat(short, texts), map[string]string{}
	n, err := s.ReadLong(t.Context(), 1, names, func(_ int, name, value string, length int) {
		expect.Equal(t, length, len(long), name, "bytes reported")
		read[name] = value
	})
	expect.NoError(t, err, n)
	expect.Equal(t, n, 1)
	expect.Equal(t, len(read), len(names), n)
	for i, name := range names {
		want := long
		if i < len(short) {
			want = ""
		}
		expect.Equal(t, read[name], want, name, "bytes")
	}
}

// Each reply of Redis is short, even if a task has many rounds and all their properties are long.
func TestLongFactsOfManyRounds(t *testing.T) {
	s := newStore(t)
	const many = 30
	h := rounds(plain, many)
	for _, name := range slices.DeleteFunc(slices.Clone(redisstate.FactFields), func(name string) bool { return name == "state" || name == "round" }) {
		h[name] = strings.Repeat("x", redisstate.LongestField)
	}
	for i := range many {
		for _, name := range redisstate.RoundFacts {
			h[task.RoundField(i, name)] = strings.Repeat("x", redisstate.LongestField)
		}
	}
	for name, value := range h {
		must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(1), name, value).Err())
	}
	l := &load{}
	s.Conn.Redis.AddHook(l)
	for _, want := range []redisstate.Want{{Fields: redisstate.Whole}, {Fields: redisstate.Facts | redisstate.Rules, Rounds: redisstate.LastRounds(many)}} {
		expect.Fails(t, expect.Result(s.ReadOne(t.Context(), 1, want)).Value(t).Invalid, "")
	}
	expect.True(t, l.bytes <= 2*redisstate.ReadAtOnce, "one answer had", l.bytes, "bytes")
	for _, name := range redisstate.RoundFacts { // the longest valid values
		h[task.RoundField(3, name)] = strings.Repeat("1", redisstate.LongestFact)
		must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(1), task.RoundField(3, name), h[task.RoundField(3, name)]).Err())
	}
	if x, err := s.ReadOne(t.Context(), 1, redisstate.Want{Fields: redisstate.Facts, Rounds: redisstate.OneRound(3)}); err != nil || x.Task.Rounds.At(3).Worker != h["3:worker"] {
		t.Errorf("read %v, %v", x, err)
	}
}

// A server that settles tasks reads each task with few commands. After the first value that is too long, the script
// checks lengths before it reads values.
func TestShortPropertiesAreReadAtOnce(t *testing.T) {
	t.Parallel()
	s := connect(t, redistest.Start(t).Addr, redistest.Namespace(t))
	const tasks = 50
	ids := make([]int64, tasks)
	for i := range ids {
		ids[i] = int64(i + 1)
		h := with(plain, task.Hash{"state": "executed", "0:claim": "c", "0:exit": "0"})
		must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(ids[i]), map[string]string(h)).Err())
	}
	calls := func() (values, lengths int) {
		must(t, s.Conn.Redis.ConfigResetStat(t.Context()).Err())
		stored := expect.Result(s.Read(t.Context(), ids, redisstate.Want{Fields: redisstate.Rules})).Value(t)
		expect.MustLen(t, stored, tasks)
		expect.MustEqual(t, stored[tasks-1].Task.Current().Exit, "0")
		return commandCalls(t, s, "hmget"), commandCalls(t, s, "hstrlen")
	}
	if values, lengths := calls(); values != 3*tasks || lengths != 2*tasks {
		t.Errorf("%d commands for values and %d for the lengths of errors", values, lengths)
	}
	must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(1), "group", strings.Repeat("x", redisstate.LongestField+1)).Err())
	if values, lengths := calls(); values != 3*tasks || lengths < 11*(tasks-1) {
		t.Errorf("after a value that is too long: %d commands for values and %d for lengths", values, lengths)
	}
}

// A meter is a connection that records the largest number of bytes that arrive between two commands.
type meter struct {
	net.Conn
	since int
	most  *atomic.Int64 // shared by all connections
}

func (m *meter) Write(p []byte) (int, error) {
	m.since = 0
	return m.Conn.Write(p)
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	m.since += n
	m.most.Store(max(m.most.Load(), int64(m.since)))
	return n, err
}

// useMeters replaces the connections of a Store by meters. It returns the maximum that the meters record.
func useMeters(t testing.TB, s *redisstate.Store) (most *atomic.Int64) {
	most = &atomic.Int64{}
	options := *s.Conn.Redis.Options()
	options.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &meter{Conn: c, most: most}, err
	}
	must(t, s.Conn.Redis.Close())
	s.Conn.Redis = redis.NewClient(&options)
	return most
}

// If large tasks follow many small tasks, the replies of Redis still have a limited size.
func TestLargeTasksAfterSmallTasks(t *testing.T) {
	s := newStore(t)
	ids := make([]int64, 700)
	_, err := s.Conn.Redis.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range ids {
			ids[i] = int64(i + 1)
			p.HSet(t.Context(), s.Keys.Task(ids[i]), "state", "archived", "round", "1")
			if i >= 640 {
				p.HSet(t.Context(), s.Keys.Task(ids[i]), "0:output", strings.Repeat("x", 1<<20))
			}
		}
		return nil
	})
	must(t, err)
	most := useMeters(t, s)
	expect.Len(t, expect.Result(s.Read(t.Context(), ids, redisstate.Want{Fields: redisstate.Whole})).Value(t), len(ids))
	expect.Compare(t, most.Load(), ">=", 1<<20)
	expect.Compare(t, most.Load(), "<=", redisstate.ReadAtOnce)
}
