package redisstate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/redistest"
)

// load is what commands make a Redis do at once.
type load struct {
	mu            sync.Mutex
	fields, bytes int      // the most that one answer had
	whole         []string // commands that read a hash whole
	names         int      // that were asked for, all in all
}

func (l *load) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *load) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (l *load) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		err := next(ctx, commands)
		for _, c := range commands {
			l.see(c)
		}
		return err
	}
}

func (l *load) see(c redis.Cmder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.Name() == "hgetall" {
		l.whole = append(l.whole, fmt.Sprint(c.Args()...))
	}
	if reply, ok := c.(*redis.SliceCmd); ok {
		bytes := 0
		for _, v := range reply.Val() {
			bytes += len(text(v))
		}
		l.fields, l.bytes = max(l.fields, len(reply.Val())), max(l.bytes, bytes)
		l.names += len(reply.Val())
	}
}

// rounds gives a hash that many rounds with all properties of rounds.
func rounds(h tdf.Hash, n int) tdf.Hash {
	h = maps.Clone(h)
	h["round"] = fmt.Sprint(n - 1)
	for i := range n {
		for _, name := range roundFacts {
			h[tdf.RoundField(i, name)] = fmt.Sprint(1000 + i)
		}
		for _, name := range roundTexts {
			h[tdf.RoundField(i, name)] = fmt.Sprint(name, " of ", i)
		}
	}
	return h
}

var plain = tdf.Hash{
	"id": "1", "state": "failed", "round": "0", "program": "p", "source": "rsync:/p/run.sh", "input": "some input", "meta": "{}",
	"log": "1 a: b", "checkpoint": "c", "outcome": "failed", "not_on": "v\nw", "max_fails": "3", "0:worker": "w", "0:executed": "7",
}

func with(h tdf.Hash, more tdf.Hash) tdf.Hash {
	h = maps.Clone(h)
	maps.Copy(h, more)
	return h
}

// What is read piece by piece is what is there.
func TestTaskIsWhole(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		for name, h := range map[string]tdf.Hash{
			"one round":     plain,
			"an original's": with(plain, tdf.Hash{"0:output": "", "0:error": "", "1:open": "8", "round": "1"}),
			"torn":          with(plain, tdf.Hash{"0:output": ""}),
			"many rounds":   rounds(plain, 2*roundsAtOnce+7),
			"no sense":      with(plain, tdf.Hash{"max_fails": "many", "source": ""}),
		} {
			want, wantErr := tdf.ParseTask(1, h)
			must(t, s.rdb.Del(t.Context(), s.keys.Task(1)).Err())
			must(t, s.rdb.HSet(t.Context(), s.keys.Task(1), map[string]string(h)).Err())
			got, err := s.Task(t.Context(), 1)
			if diff := cmp.Diff(want, got); diff != "" || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Errorf("%s: %v, want %v (-want +got):\n%s", name, err, wantErr, diff)
			}
			all, err := s.Tasks(t.Context(), 1)
			if diff := cmp.Diff([]*tdf.Task{want}, all); diff != "" || err != nil {
				t.Errorf("%s, with others: %v (-want +got):\n%s", name, err, diff)
			}
		}
		if _, err := s.Task(t.Context(), 99); !errors.Is(err, tdf.ErrNoTask) {
			t.Errorf("no task: %v", err)
		}
		if _, err := s.Inspect(t.Context(), 99); !errors.Is(err, tdf.ErrNoTask) {
			t.Errorf("no task: %v", err)
		}
	})
}

// restless does something after each time that the head of a task was read.
type restless func()

func (r restless) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r restless) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (r restless) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		err := next(ctx, commands)
		if strings.Contains(fmt.Sprint(commands[0].Args()), strings.Join(headFields, " ")) {
			r()
		}
		return err
	}
}

// A task that is removed while it is read is gone, however often it had moved before: it is not
// one that makes no sense.
func TestTaskIsRemovedWhileItIsRead(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		moves := 0
		s.rdb.AddHook(restless(func() {
			if moves > 0 {
				must(t, s.rdb.HSet(t.Context(), s.keys.Task(1), "outcome", moves).Err())
			} else {
				must(t, s.rdb.Del(t.Context(), s.keys.Task(1)).Err())
			}
			moves--
		}))
		for before := range wholeTries {
			must(t, s.rdb.HSet(t.Context(), s.keys.Task(1), map[string]string(plain)).Err())
			moves = before
			if got, err := s.Task(t.Context(), 1); !errors.Is(err, tdf.ErrNoTask) {
				t.Errorf("after %d moves: %+v, %v", before, got, err)
			}
		}
	})
}

// However much there is to read, Redis is not kept busy with one command.
func TestReadingATaskBlocksNobody(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		many := rounds(plain, 300)
		large := rounds(plain, 12)
		for i := range 12 {
			large[tdf.RoundField(i, "output")] = strings.Repeat("x", 1<<20)
		}
		must(t, s.rdb.HSet(t.Context(), s.keys.Task(1), map[string]string(many)).Err())
		must(t, s.rdb.HSet(t.Context(), s.keys.Task(2), map[string]string(large)).Err())
		l := &load{}
		s.rdb.AddHook(l)
		for id, rounds := range map[int64]int{1: 300, 2: 12} {
			task, err := s.Task(t.Context(), id)
			if err != nil || len(task.Rounds) != rounds || task.Rounds[rounds-1].Tail == "" {
				t.Fatalf("task %d: %v", id, err)
			}
			if _, err := s.Glance(t.Context(), []int64{id}, rounds, func(*tdf.Task) bool { return true }); err != nil {
				t.Fatal(err)
			}
		}
		if l.fields < 500 || l.fields > namesAtOnce || len(l.whole) > 0 {
			t.Errorf("up to %d properties at once, and whole %v", l.fields, l.whole)
		}
		l.names, l.bytes = 0, 0
		seen, err := s.Inspect(t.Context(), 2)
		if r := seen.Task.Current(); err != nil || r.Worker != "1011" || !r.Failed || !r.Committed || seen.Task.Rounds[10].PID != 1010 || seen.Task.Rounds[9].Worker != "" {
			t.Errorf("inspected: %+v, %v", seen.Task, err)
		}
		if round, err := s.Round(t.Context(), 1, 17); err != nil || round.Output != "output of 17" || round.PID != 1017 {
			t.Errorf("round 17: %+v, %v", round, err)
		}
		if l.names > 200 || l.bytes > 1000 {
			t.Errorf("%d properties were asked for, and up to %d bytes came", l.names, l.bytes)
		}
	})
}

// What was printed comes in pieces, too.
func TestReadingMuchOutputBlocksNobody(t *testing.T) {
	s := connect(t, redistest.Start(t).Addr, redistest.Namespace(t))
	large := rounds(plain, 12)
	for i := range 12 {
		large[tdf.RoundField(i, "output")] = strings.Repeat("x", 1<<20)
	}
	must(t, s.rdb.HSet(t.Context(), s.keys.Task(1), map[string]string(large)).Err())
	must(t, s.rdb.ConfigResetStat(t.Context()).Err())
	task, err := s.Task(t.Context(), 1)
	if err != nil || len(task.Rounds[11].Output) != 1<<20 {
		t.Fatal(err)
	}
	stats := s.rdb.Info(t.Context(), "commandstats").Val()
	var reads int
	_, after, _ := strings.Cut(stats, "cmdstat_hmget:calls=")
	fmt.Sscan(strings.ReplaceAll(after, ",", " "), &reads)
	if pieces := 12 << 20 / readAtOnce; reads <= pieces || strings.Contains(stats, "hgetall") {
		t.Errorf("%d commands read at least %d pieces", reads, pieces)
	}
}

// A number of rounds that somebody made up is not believed.
func TestRoundsThatNeverWere(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		must(t, s.rdb.HSet(t.Context(), s.keys.Task(1), map[string]string(with(plain, tdf.Hash{"round": "99999", "99999:open": "5"}))).Err())
		must(t, s.rdb.HSet(t.Context(), s.keys.Task(2), map[string]string(rounds(plain, manyRounds+1))).Err())
		l := &load{}
		s.rdb.AddHook(l)
		tasks, err := s.Glance(t.Context(), []int64{1, 2}, 10, func(*tdf.Task) bool { return true })
		if err != nil || tasks[0].Round != 0 || tasks[0].Current().Worker != "w" || tasks[1].Round != manyRounds || tasks[1].Current().PID != 1000+manyRounds {
			t.Errorf("%+v, %v", tasks, err)
		}
		if task, err := s.Task(t.Context(), 1); err != nil || len(task.Rounds) != 1 || task.Input != "some input" {
			t.Errorf("%+v, %v", task, err)
		}
		if l.names > 1000 {
			t.Errorf("%d properties were asked for", l.names)
		}
	})
}
