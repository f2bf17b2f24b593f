package redisstate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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

func (l *load) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		err := next(ctx, c)
		l.see(c)
		return err
	}
}

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
		l.add(reply.Val())
	}
	if reply, ok := c.(*redis.ScanCmd); ok {
		values, _ := reply.Val()
		some := make([]any, len(values))
		for i, v := range values {
			some[i] = v
		}
		l.add(some)
	}
	if reply, ok := c.(*redis.Cmd); ok { // of fields.lua
		for _, answer := range list(reply.Val()) {
			l.add(list(answer))
		}
	}
}

func (l *load) add(values []any) {
	bytes := 0
	for _, v := range values {
		bytes += len(text(v))
	}
	l.fields, l.bytes = max(l.fields, len(values)), max(l.bytes, bytes)
	l.names += len(values)
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

func (r restless) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r restless) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		err := next(ctx, c)
		if err == nil && strings.Contains(fmt.Sprint(c.Args()), strings.Join(headFields, " ")) {
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
			if err != nil || len(task.Rounds) != rounds || task.Rounds.At(rounds-1).Tail == "" {
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
		if r := seen.Task.Current(); err != nil || r.Worker != "1011" || !r.HasError || !r.Committed || seen.Task.Rounds.At(10).PID != 1010 || seen.Task.Rounds.At(9).Worker != "" {
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
	if err != nil || len(task.Rounds.At(11).Output) != 1<<20 {
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

// A number of rounds that somebody made up costs no more than the properties that are there.
func TestRoundsThatNeverWere(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		many := 100
		must(t, s.rdb.HSet(t.Context(), s.keys.Task(1), map[string]string(with(plain, tdf.Hash{"round": "99999", "99999:open": "5"}))).Err())
		must(t, s.rdb.HSet(t.Context(), s.keys.Task(2), map[string]string(rounds(plain, many+1))).Err())
		l := &load{}
		s.rdb.AddHook(l)
		tasks, err := s.Glance(t.Context(), []int64{1, 2}, 10, func(*tdf.Task) bool { return true })
		if err != nil || tasks[0].Round != 99999 || tasks[0].Current().Entered[tdf.Open] != 5 || len(tasks[0].Rounds) != 1 ||
			tasks[1].Round != many || tasks[1].Current().PID != 1000+many || len(tasks[1].Rounds) != 10 {
			t.Errorf("%+v, %v", tasks, err)
		}
		if task, err := s.Task(t.Context(), 1); err != nil || len(task.Rounds) != 2 || task.Rounds.At(0).Worker != "w" || task.Input != "some input" {
			t.Errorf("%+v, %v", task, err)
		}
		if l.names > 1000 {
			t.Errorf("%d properties were asked for", l.names)
		}
	})
}

// Neither is a number of a round believed that no task can have, wherever it is read.
func TestRoundBeyondAll(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		for _, round := range []string{"9223372036854775807", "100000", "-1", "1e9", "many"} {
			must(t, s.rdb.HSet(t.Context(), s.keys.Task(1), map[string]string(with(plain, tdf.Hash{"round": round}))).Err())
			seen, err := s.Inspect(t.Context(), 1)
			if err != nil || seen.Task.Current().Worker != "w" || seen.Invalid == nil || !strings.HasPrefix(seen.Invalid.Error(), "round: ") {
				t.Errorf("round %s: inspected %+v, %v", round, seen, err)
			}
			if loaded, err := s.Load(t.Context(), []int64{1}); err != nil || loaded[0].Invalid == nil {
				t.Errorf("round %s: loaded %+v, %v", round, loaded, err)
			}
			if task, err := s.Task(t.Context(), 1); task == nil || task.Current().Worker != "w" {
				t.Errorf("round %s: read %+v, %v", round, task, err)
			}
			if tasks, err := s.Glance(t.Context(), []int64{1}, 2, func(*tdf.Task) bool { return true }); err != nil || tasks[0].Round != 0 {
				t.Errorf("round %s: %+v, %v", round, tasks, err)
			}
		}
	})
}

// A value that is too long costs Redis and its reader nothing, wherever it is.
func TestLongValuesAreNotRead(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		huge := plain
		for _, name := range slices.Concat(headFields[2:], bodyFields, []string{"0:worker", "0:claim", "0:exit", "0:progress"}) {
			huge = with(huge, tdf.Hash{name: strings.Repeat("x", longestField+1)})
		}
		must(t, s.rdb.HSet(t.Context(), s.keys.Task(1), map[string]string(huge)).Err())
		must(t, s.rdb.HSet(t.Context(), s.keys.Task(2), map[string]string(plain)).Err())
		l := &load{}
		s.rdb.AddHook(l)
		seen, err := s.Load(t.Context(), []int64{1, 2})
		if err != nil || seen[0].Invalid == nil || !strings.Contains(seen[0].Invalid.Error(), "has 131072 bytes") || seen[1].Task.Current().Worker != "w" {
			t.Errorf("loaded %+v, %v", seen, err)
		}
		if _, err := s.Glance(t.Context(), []int64{1, 2}, 2, func(*tdf.Task) bool { return true }); err != nil {
			t.Error(err)
		}
		if _, err := s.Inspect(t.Context(), 1); err != nil {
			t.Error(err)
		}
		if _, err := s.Sight(t.Context(), []int64{1, 2}); err != nil {
			t.Error(err)
		}
		if task, err := s.Task(t.Context(), 1); task == nil || err == nil || !strings.Contains(err.Error(), "has 131072 bytes") {
			t.Errorf("read %v, %v", task, err)
		}
		must(t, s.rdb.HSet(t.Context(), s.keys.Task(1), "input", strings.Repeat("x", 1<<20), "0:output", "out").Err())
		texts, err := s.Texts(t.Context(), []TextsOf{{1, []string{"input", "meta", "0:output"}}, {2, []string{"input"}}}, 1<<30)
		if fmt.Sprint(texts) != "[[(1048576 bytes, too long to be valid) {} out] [some input]]" || err != nil {
			t.Errorf("texts: %.100q, %v", texts, err)
		}
		if l.bytes > 1000 {
			t.Errorf("up to %d bytes came", l.bytes)
		}
	})
}

// A task with very many properties is read whole without a command that goes through all of them.
func TestManyPropertiesBlockNobody(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		h := rounds(plain, 250)
		for i := range fewNames {
			h[fmt.Sprint("unknown ", i)] = "x"
		}
		must(t, s.rdb.HSet(t.Context(), s.keys.Task(1), map[string]string(h)).Err())
		want, _ := tdf.ParseTask(1, h)
		l := &load{}
		s.rdb.AddHook(l)
		task, err := s.Task(t.Context(), 1)
		if diff := cmp.Diff(want, task); diff != "" || err != nil {
			t.Errorf("read: %v (-want +got):\n%s", err, diff)
		}
		tasks, err := s.Tasks(t.Context(), 2, 1)
		if diff := cmp.Diff([]*tdf.Task{nil, want}, tasks); diff != "" || err != nil {
			t.Errorf("read with others: %v (-want +got):\n%s", err, diff)
		}
		must(t, s.Records(t.Context(), []int64{1}, func(r Record) error {
			if diff := cmp.Diff(h, r.Hash); diff != "" {
				t.Errorf("as a record (-want +got):\n%s", diff)
			}
			return nil
		}))
		for _, command := range l.whole {
			if !strings.HasSuffix(command, ":2") {
				t.Errorf("%s", command)
			}
		}
	})
}
