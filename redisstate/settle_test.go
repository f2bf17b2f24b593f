package redisstate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// executed contains changes of a task that has been executed in its first round with exit status 0.
var executed = map[string]struct {
	with  map[string]string // properties to write; the value "-" deletes the property
	usual bool
}{
	"usual":                      {nil, true},
	"in a group":                 {map[string]string{"group": "g"}, true},
	"output":                     {map[string]string{"0:output": "x"}, true},
	"stamped in the future":      {map[string]string{"0:executed": "9000000000.000000"}, true},
	"something on stderr":        {map[string]string{"0:error": "x"}, false},
	"another exit status":        {map[string]string{"0:exit": "1"}, false},
	"a signal":                   {map[string]string{"0:exit": "signal: killed"}, false},
	"no exit status":             {map[string]string{"0:exit": "-"}, false},
	"end_before":                 {map[string]string{"end_before": "9000000000"}, false},
	"another spelling of inf":    {map[string]string{"end_before": "Inf"}, false},
	"fail_on exit":               {map[string]string{"fail_on": "exit", "0:error": "x"}, true},
	"fail_on any":                {map[string]string{"fail_on": "any"}, true},
	"fail_on any, and stderr":    {map[string]string{"fail_on": "any", "0:error": "x"}, false},
	"fail_on stderr, written":    {map[string]string{"fail_on": "stderr"}, false}, // only the rules in Go know that this is the default
	"an unknown fail_on":         {map[string]string{"fail_on": "foo"}, false},
	"keep_finished":              {map[string]string{"keep_finished": "60"}, false},
	"keep_outputs":               {map[string]string{"keep_outputs": "60"}, false},
	"keep_archived":              {map[string]string{"keep_archived": "60"}, true},
	"a later round":              {map[string]string{"round": "1"}, false},
	"another state":              {map[string]string{"state": "running"}, false},
	"no claim":                   {map[string]string{"0:claim": "-"}, false},
	"not stamped":                {map[string]string{"0:executed": "-"}, false},
	"stamped with a word":        {map[string]string{"0:executed": "then"}, false},
	"stamped with a negative":    {map[string]string{"0:executed": "-5"}, false},
	"stamped in hex":             {map[string]string{"0:executed": "0x5"}, false},
	"stamped with spaces":        {map[string]string{"0:executed": " 5 "}, false},
	"stamped with an exponent":   {map[string]string{"0:executed": "1e400"}, false},
	"stamped with nan":           {map[string]string{"0:executed": "nan"}, false},
	"max_fails, and no failures": {map[string]string{"max_fails": "3"}, true},
}

// SettleUsual settles only the tasks that fit the usual case, and it settles them as the rules do.
func TestSettleUsualIsSettle(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		names := slices.Sorted(maps.Keys(executed))
		for _, name := range names { // two tasks for each name: SettleUsual settles the first task, and the rules settle the second task
			for range 2 {
				id := mustOpen(t, s, define(name))[0]
				c := mustClaim(t, s, 1)[0]
				m := expect.Result(c.Task.Execute(c.ID, tdf.Result{Exit: "0"})).Value(t)
				expect.NoError(t, expect.Result(s.Execute(ctx, "w", m)).Value(t)[0].Err)
				for field, value := range executed[name].with {
					if value == "-" {
						must(t, s.Redis.HDel(ctx, s.Keys.Task(id), field).Err())
					} else {
						must(t, s.Redis.HSet(ctx, s.Keys.Task(id), field, value).Err())
					}
				}
			}
		}
		now := expect.Result(s.Now(ctx)).Value(t)
		for i := range names {
			must(t, s.Redis.ZRem(ctx, s.Keys.Due(), 2*i+2).Err())
		}
		usual := 0
		for _, c := range executed {
			if c.usual {
				usual++
			}
		}
		moved, others := settleInParts(t, s, now)
		expect.MustEqual(t, moved, usual)
		expect.MustEqual(t, len(others), len(names)-usual, "moved", moved)
		for i, name := range names {
			compareSettled(t, s, name, int64(2*i+1), executed[name].usual, now)
		}
		expect.Len(t, expect.Result(s.List(ctx, tdf.Succeeded, "g", 0, 10)).Value(t), 2, "the group")
	})
}

// settleInParts settles all due tasks, a few with each call. A call with more tasks might end early on a slow machine.
func settleInParts(t *testing.T, s *Store, now tdf.Time) (moved int, others []Due) {
	t.Helper()
	all := s.Redis.ZRangeWithScores(t.Context(), s.Keys.Due(), 0, -1).Val()
	for part := range slices.Chunk(all, 8) {
		must(t, s.Redis.Del(t.Context(), s.Keys.Due()).Err())
		must(t, s.Redis.ZAdd(t.Context(), s.Keys.Due(), part...).Err())
		n, rest, err := s.SettleUsual(t.Context(), "server", tdf.UsualSuccess(), now, 100)
		must(t, err)
		moved, others = moved+n, append(others, rest...)
	}
	must(t, s.Redis.Del(t.Context(), s.Keys.Due()).Err())
	for _, z := range all {
		if slices.ContainsFunc(others, func(d Due) bool { return fmt.Sprint(d.ID) == z.Member }) {
			must(t, s.Redis.ZAdd(t.Context(), s.Keys.Due(), z).Err())
		}
	}
	return moved, others
}

// compareSettled compares two tasks that were equal before SettleUsual examined the first task. The first task has the
// given id. The second task has the next id: compareSettled settles it by the rules, and then compares the tasks.
func compareSettled(t *testing.T, s *Store, name string, id int64, usual bool, now tdf.Time) {
	t.Helper()
	ctx := t.Context()
	twin := expect.Result(s.ReadOne(ctx, id+1, Want{Fields: Rules})).Value(t)
	m, ok := twin.Task.Settle(now, twin.Invalid)
	if usual {
		expect.MustTrue(t, ok, name, "the rules do", m)
		expect.MustEqual(t, m.Verb, tdf.VerbSucceed, name)
		expect.NoError(t, expect.Result(s.Apply(ctx, "server", Unit{Moves: []tdf.Move{m}})).Value(t)[0].Err)
	}
	got, want := s.Redis.HGetAll(ctx, s.Keys.Task(id)).Val(), s.Redis.HGetAll(ctx, s.Keys.Task(id+1)).Val()
	for field := range maps.Keys(want) {
		if field == "id" || field == "0:claim" || strings.HasPrefix(field, "0:") && field != "0:exit" || field == "lease_until" || field == "log" {
			continue
		}
		expect.Equal(t, got[field], want[field], name, field)
	}
	expect.Equal(t, len(got), len(want), name)
	expect.Equal(t, strings.Count(got["log"], "\n"), strings.Count(want["log"], "\n"), name)
	list := tdf.Executed
	if usual {
		list = tdf.Succeeded
	}
	must(t, s.Redis.ZScore(ctx, s.Keys.List(list), fmt.Sprint(id)).Err(), name, "the task is not in", list)
	expect.Equal(t, s.Redis.ZScore(ctx, s.Keys.Due(), fmt.Sprint(id)).Err() == redis.Nil, usual, name)
	if usual {
		expect.Compare(t, got["0:succeeded"], ">=", got["0:executed"], name)
	}
}

// SettleUsual removes members of the list due that are not ids. It returns a missing task among the tasks that do not
// fit.
func TestSettleUsualWithOddMembers(t *testing.T) {
	s := newStore(t)
	ctx := t.Context()
	for _, odd := range []string{"", "a b", "1\n2", "-3", "99999999999999999999999", "007", "abc", "7"} {
		must(t, s.Redis.ZAdd(ctx, s.Keys.Due(), redis.Z{Score: 1, Member: odd}).Err())
	}
	usual := map[string]any{"state": "executed", "round": "0", "end_before": "inf", "0:exit": "0", "0:claim": "c", "0:executed": "5"}
	for _, odd := range []string{"abc", "007"} {
		must(t, s.Redis.HSet(ctx, s.Keys.TaskPrefix()+odd, usual).Err())
	}
	now := expect.Result(s.Now(ctx)).Value(t)
	moved, others, err := s.SettleUsual(ctx, "server", tdf.UsualSuccess(), now, 100)
	expect.NoError(t, err, "moved", moved)
	expect.Equal(t, moved, 0)
	expect.MustLen(t, others, 1, "moved", moved)
	expect.Equal(t, others[0].ID, 7, "moved", moved)
	expect.Equal(t, s.Redis.ZRange(ctx, s.Keys.Due(), 0, -1).Val(), []string{"7"}, "the list due contains")
}

// dueTasks returns the first due tasks, and settles none of them.
func dueTasks(ctx context.Context, s *Store, now tdf.Time, most int64) ([]Due, error) {
	found, err := s.Redis.ZRangeByScoreWithScores(ctx, s.Keys.Due(), &redis.ZRangeBy{Min: "-inf", Max: now.String(), Count: most}).Result()
	var due []Due
	for _, z := range found {
		if due, err = s.appendDue(ctx, due, z.Member.(string), z.Score); err != nil {
			return nil, err
		}
	}
	return due, err
}

// settlements returns the Moves that a server makes for due tasks: it settles them, or looks at them later.
func settlements(ctx context.Context, s *Store, most int64) (moves []tdf.Move, err error) {
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	due, err := dueTasks(ctx, s, now, most)
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(due))
	for i := range due {
		ids[i] = due[i].ID
	}
	seen, err := s.Read(ctx, ids, Want{Fields: Rules})
	if err != nil {
		return nil, err
	}
	if err := s.SetUnstarted(ctx, now, seen); err != nil {
		return nil, err
	}
	for i, t := range seen {
		if t.Task == nil { // the task was settled and removed meanwhile
			continue
		}
		m, ok := t.Task.Settle(now, t.Invalid)
		if !ok {
			m = t.Task.Reschedule(t.Task.NextDue(now))
		}
		m.Due = due[i].Score
		moves = append(moves, m)
	}
	return moves, nil
}
