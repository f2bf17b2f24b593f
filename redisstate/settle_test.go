package redisstate_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/dependencies"
)

// A report that settles its round does the same as a report without it and the server after it, in one step.
func TestSettledReport(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		ctx := t.Context()
		now := expect.Result(s.Now(ctx)).Value(t)
		kept := rules.Result{Exit: "0", Output: "x", Started: now, Seconds: 1e-6}
		for name, c := range map[string]struct {
			d      func(d *task.Properties)
			result rules.Result
			want   task.State // after the report
		}{
			"success":              {nil, kept, task.Succeeded},
			"no time":              {nil, rules.Result{Exit: "0"}, task.Succeeded},
			"stderr":               {nil, rules.Result{Exit: "0", Error: "x"}, task.Failed},
			"exit":                 {func(d *task.Properties) { d.FailOn = task.FailOnExit }, rules.Result{Exit: "3"}, task.Failed},
			"refused":              {nil, rules.Result{Exit: "0", Refused: true, Reason: "why"}, task.Failed},
			"fails, tolerated":     {func(d *task.Properties) { d.MaxFails = 1 }, rules.Result{Exit: "1", Error: "x"}, task.Open},
			"fails for good":       {func(d *task.Properties) { d.MaxFails = 1 }, rules.Result{Exit: "1", Error: "x", Permanent: true}, task.Failed},
			"the last attempt":     {func(d *task.Properties) { d.MaxFails, d.MaxAttempts = 5, 1 }, rules.Result{Exit: "1", Error: "x"}, task.Failed},
			"back-off":             {func(d *task.Properties) { d.MaxFails, d.Backoff = 1, 100 }, rules.Result{Exit: "1", Error: "x"}, task.Open},
			"claim_before":         {func(d *task.Properties) { d.MaxFails, d.ClaimBefore = 1, now.Add(600) }, rules.Result{Exit: "1", Error: "x"}, task.Open},
			"retention":            {func(d *task.Properties) { d.KeepFinished, d.KeepOutputs = 600, 60 }, kept, task.Succeeded},
			"in time":              {func(d *task.Properties) { d.EndBefore = now.Add(3600) }, kept, task.Succeeded},
			"perhaps late":         {func(d *task.Properties) { d.EndBefore = now.Add(3600) }, rules.Result{Exit: "0"}, task.Executed},
			"late":                 {func(d *task.Properties) { d.EndBefore = now.Add(3600) }, rules.Result{Exit: "0", Started: now, Seconds: 3601}, task.Executed},
			"a group, and a queue": {func(d *task.Properties) { d.Group, d.Queue, d.Priority = "g", "q", 3 }, kept, task.Succeeded},
			"a queue, and again":   {func(d *task.Properties) { d.Group, d.Queue, d.MaxFails = "g", "q", 3 }, rules.Result{Exit: "1", Error: "x"}, task.Open},
			"a limit":              {func(d *task.Properties) { d.LimitKey = "k" }, kept, task.Succeeded},
		} {
			d := define(name)
			if c.d != nil {
				c.d(&d)
			}
			ids := mustOpen(t, s, d, d)
			offer := redisstate.PlainOffer
			if d.Queue != "" {
				offer = offerOf(d.Queue)
			}
			claims := claimFor(t, s, 2, offer).Claims
			expect.MustLen(t, claims, 2, name)
			for i, x := range claims {
				m := expect.Result(rules.Execute(x.Task, x.ID, c.result)).Value(t)
				if i == 0 {
					m = m.Settled(expect.Result(s.ReadOne(ctx, ids[0], redisstate.Want{Fields: redisstate.Result})).Value(t).Task, c.result)
				}
				for range 2 { // the second call repeats the first one
					expect.NoError(t, expect.Result(s.Execute(ctx, "w", m)).Value(t)[0].Err, name)
				}
			}
			expect.Equal(t, read(t, s, ids[0]).State, c.want, name)
			if c.want != task.Executed {
				m, _ := rules.Settle(read(t, s, ids[1]), 0, nil)
				mustApply(t, s, m, nil)
			}
			compareTasks(t, s, name, ids)
			for _, id := range ids {
				if c.want == task.Open {
					mustMove(t, s, id, rules.Cancel)
				}
			}
		}
		settleMany(t, s)
		mustBeSound(t, s)
	})
}

// compareTasks compares two tasks that were equal before their reports.
func compareTasks(t *testing.T, s *redisstate.Store, name string, ids []int64) {
	t.Helper()
	var texts []string
	for _, id := range ids {
		h := s.Conn.Redis.HGetAll(t.Context(), s.Keys.Task(id)).Val()
		for _, field := range []string{"id", "log", "0:claim", "lease_until", "0:output", "place"} {
			delete(h, field)
		}
		lists := []string{}
		for _, list := range append(rules.Lists, "due") {
			if s.Conn.Redis.ZScore(t.Context(), s.Keys.Key(string(list)), fmt.Sprint(id)).Err() == nil {
				lists = append(lists, string(list))
			}
		}
		text := []string{strings.Join(lists, " ")}
		for _, field := range slices.Sorted(maps.Keys(h)) {
			text = append(text, field+"="+h[field])
		}
		texts = append(texts, decimal.ReplaceAllString(strings.Join(text, "\n"), "T"))
	}
	expect.Equal(t, texts[0], texts[1], name)
}

// A report that settles its round also ends the wait of its dependents, which were opened after the claim.
func TestSettledReportWithDependents(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		id := mustOpen(t, s, define("x"))[0]
		c := mustClaim(t, s, 1)[0]
		mustOpen(t, s, afterTasks(id))
		expect.Result(dependencies.Of(s).LinkWaiting(t.Context())).OK(t)
		result := rules.Result{Exit: "0"}
		m := expect.Result(rules.Execute(c.Task, c.ID, result)).Value(t).Settled(c.Task, result)
		mustApply(t, s, m, nil)
		expect.Equal(t, read(t, s, id).State, task.Succeeded)
		expect.Equal(t, s.Conn.Redis.ZRange(t.Context(), s.Keys.Ended(), 0, -1).Val(), []string{fmt.Sprint(id, ":0:succeeded")})
		mustBeSound(t, s)
	})
}

// A report that settles its round waits until a replica has both.
func TestSettledReportWithReplicas(t *testing.T) {
	t.Parallel()
	primary, replica := redistest.Start(t, redistest.Replicates), redistest.Start(t, redistest.Replicates)
	replica.Follow(primary)
	at := conntest.Config(t, primary.Addr)
	at.Replicas = config.Replicas{Wanted: 1, Timeout: time.Minute}
	s := expect.Result(redisstate.Connect(t.Context(), at, redistest.Namespace(t), quiet)).Value(t)
	t.Cleanup(func() { s.Close() })
	id := mustOpen(t, s, define("x"))[0]
	c, result := mustClaim(t, s, 1)[0], rules.Result{Exit: "0"}
	m := expect.Result(rules.Execute(c.Task, c.ID, result)).Value(t).Settled(c.Task, result)
	expect.NoError(t, expect.Result(s.Execute(t.Context(), "w", m)).Value(t)[0].Err)
	there := redistest.Client(t, redis.Options{Addr: replica.Addr, DB: at.DB})
	expect.Equal(t, there.HGet(t.Context(), s.Keys.Task(id), "state").Val(), "succeeded")
}

// DueTasks removes members of the list due that are not ids.
func TestDueTasksWithOddMembers(t *testing.T) {
	s := newStore(t)
	ctx := t.Context()
	for _, odd := range []string{"", "a b", "1\n2", "99999999999999999999999", "007", "abc", "7"} {
		must(t, s.Conn.Redis.ZAdd(ctx, s.Keys.Due(), redis.Z{Score: 1, Member: odd}).Err())
	}
	due := expect.Result(s.DueTasks(ctx, task.Never, 100)).Value(t)
	expect.MustLen(t, due, 1)
	expect.Equal(t, due[0].ID, 7)
	expect.Equal(t, s.Conn.Redis.ZRange(ctx, s.Keys.Due(), 0, -1).Val(), []string{"7"}, "the list due contains")
}

// settleMany makes the moves that a server makes for due tasks. It returns how many tasks it settled.
func settleMany(t *testing.T, s *redisstate.Store) (settled int) {
	t.Helper()
	for _, m := range expect.Result(settlements(t.Context(), s, 1000)).Value(t) {
		if m.Verb != rules.VerbReschedule {
			settled++
		}
		mustApply(t, s, m, nil)
	}
	return settled
}

// settlements returns the Moves that a server makes for due tasks: it settles them, or looks at them later.
func settlements(ctx context.Context, s *redisstate.Store, most int) (moves []rules.Move, err error) {
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	due, err := s.DueTasks(ctx, now, most)
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(due))
	for i := range due {
		ids[i] = due[i].ID
	}
	seen, err := s.Read(ctx, ids, redisstate.Want{Fields: redisstate.Rules})
	if err != nil {
		return nil, err
	}
	for i, t := range seen {
		if t.Task == nil { // the task was settled and removed meanwhile
			continue
		}
		m, ok := rules.Settle(t.Task, now, t.Invalid)
		if !ok {
			m = rules.Reschedule(t.Task, rules.NextDue(t.Task, now))
		}
		m.Due = due[i].Score
		moves = append(moves, m)
	}
	return moves, nil
}
