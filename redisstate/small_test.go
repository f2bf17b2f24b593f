package redisstate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// sizedTasks are tasks of all sizes, from 1 up; the last ones are invalid.
func sizedTasks() []task.Hash {
	output := func(h task.Hash, n int) task.Hash {
		return with(h, task.Hash{"0:output": strings.Repeat("x", n), "0:error": "<bad>", "0:result": "{}"})
	}
	return []task.Hash{
		plain, rounds(plain, 4),
		{},
		output(plain, 100<<10), output(rounds(plain, 3), 20<<10), output(plain, 1<<20),
		with(plain, task.Hash{"state": "succeeded", "owner": "o", "0:claim": "c", "0:linked": "3", "unknown": "x", "7:worker": "v"}),
		with(output(plain, 50<<10), task.Hash{"state": "running", "program": "q", "0:tail": "t", "0:progress": "0.5 half"}),
		rounds(plain, 50),
		with(plain, task.Hash{"0:worker": strings.Repeat("x", redisstate.LongestFact+1)}),
		with(plain, task.Hash{"round": "many", "input": strings.Repeat("x", redisstate.LongestField+1)}),
		with(plain, task.Hash{"unknown": strings.Repeat("x", 5<<10), "01:worker": strings.Repeat("x", 5<<10)}),
	}
}

// Tasks of all sizes are read as they are if Redis reports no sizes. Of a task that is not small, no command reads what is
// not wanted.
func TestSizedTasksAreReadAsOthers(t *testing.T) {
	s := newStore(t)
	careful := connect(t, s.Conn.Addr, s.Keys.Namespace())
	careful.SetSizeless()
	var ids []int64
	for i, h := range sizedTasks() {
		ids = append(ids, int64(i+1))
		if len(h) > 0 {
			must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(ids[i]), map[string]string(h)).Err())
		}
	}
	must(t, s.Conn.Redis.Set(t.Context(), s.Keys.Task(99), "no hash", 0).Err())
	must(t, s.Conn.Redis.ZAdd(t.Context(), s.Keys.List(task.Archived), redis.Z{Score: 8, Member: "7"}).Err())
	ids = append(slices.Insert(ids, 3, 99), 1)
	last := func(x *task.Task) []redisstate.TextsOf {
		return []redisstate.TextsOf{{redisstate.OfTask, task.TextInput | task.TextMeta}, {x.LastRun(), task.TextOutput | task.TextResult | task.TextError}}
	}
	most := useMeters(t, s)
	for name, want := range map[string]redisstate.Want{
		"facts":   {Fields: redisstate.Facts, Rounds: redisstate.LastRounds(2)},
		"a round": {Fields: redisstate.Head | redisstate.Facts, Rounds: redisstate.OneRound(1)},
		"inputs":  {Fields: redisstate.Facts, Texts: redisstate.SameTexts(redisstate.TextsOf{redisstate.OfTask, task.TextInput})},
		"outputs": {Fields: redisstate.Facts, Rounds: redisstate.LastRounds(2), Texts: last},
		"few":     {Fields: redisstate.Facts, Rounds: redisstate.LastRounds(1), Texts: last, MaxBytes: 120 << 10},
		"kept": {
			Fields: redisstate.Facts, Rounds: redisstate.LastRounds(2), Texts: last,
			KeepHead: func(x *task.Task) bool { return x.Program == "p" && x.State != task.Archived },
			Keep:     func(x *task.Task) bool { return x.Program == "p" && x.State != task.Archived && x.Round < 3 },
		},
	} {
		most.Store(0)
		got := expect.Result(s.Read(t.Context(), ids, want)).Value(t)
		if want.Texts == nil {
			expect.Compare(t, most.Load(), "<", 100<<10, name)
		}
		other := expect.Result(careful.Read(t.Context(), ids, want)).Value(t)
		expect.Equal(t, fmt.Sprint(invalids(got)), fmt.Sprint(invalids(other)), name)
		expect.Equal(t, cmp.Diff(other, got), "", name)
	}
}

// invalids returns why tasks are invalid, and forgets it.
func invalids(all []redisstate.Stored) (errs []error) {
	for i := range all {
		errs, all[i].Invalid = append(errs, all[i].Invalid), nil
	}
	return errs
}

// A list of small tasks takes two short commands of Redis for each, and one of a larger task four.
func TestAListTakesFewCommands(t *testing.T) {
	t.Parallel()
	s := connect(t, redistest.Start(t).Addr, redistest.Namespace(t))
	var ids []int64
	for i := range 20 {
		ids = append(ids, int64(i+1))
		h := with(plain, task.Hash{"state": "running", "0:output": strings.Repeat("x", i%2*(20<<10))})
		must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(ids[i]), map[string]string(h)).Err())
	}
	must(t, s.Conn.Redis.ConfigResetStat(t.Context()).Err())
	expect.Result(s.Read(t.Context(), ids, redisstate.Want{Fields: redisstate.Facts, Rounds: redisstate.LastRounds(2)})).OK(t)
	for command, calls := range map[string]int{"memory|usage": 20, "hgetall": 10, "hkeys": 10, "hget": 10, "hmget": 10, "evalsha": 0} {
		expect.Equal(t, commandCalls(t, s, command), calls, command)
	}
}
