package redisstate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// limitedBy returns a definition with a limit key.
func limitedBy(key string) task.Properties {
	d := define("x")
	d.LimitKey = key
	return d
}

func mustLimit(t testing.TB, s *redisstate.Store, key string, limit task.Limit) {
	t.Helper()
	must(t, s.Limits.SetLimit(t.Context(), key, limit))
}

func running(n int) task.Limit { return task.Limit{AtMost: n} }

// claimAll makes claims until one has no more tasks, and returns the ids of the claimed tasks.
func claimAll(t testing.TB, s *redisstate.Store, most int) (ids []int64) {
	t.Helper()
	for _, c := range mustClaim(t, s, most) {
		ids = append(ids, c.Task.ID)
	}
	return ids
}

// returnWaiting returns held tasks, as a server does. It returns their number. On a busy machine, calls leave some tasks
// to the next one.
func returnWaiting(t testing.TB, s *redisstate.Store) int {
	t.Helper()
	n, err := returnAll(t, s)
	must(t, err)
	return n
}

// returnAll returns held tasks until no more may return, and the last error.
func returnAll(t testing.TB, s *redisstate.Store) (returned int, failed error) {
	t.Helper()
	for more := true; more; {
		n, again, err := s.Limits.ReturnHeld(t.Context())
		if returned, more = returned+n, again; err != nil {
			failed = err
		}
	}
	return returned, failed
}

// heldDue returns the reasons whose check is due.
func heldDue(t testing.TB, s *redisstate.Store) []string {
	t.Helper()
	until := expect.Result(s.Now(t.Context())).Value(t).String()
	due := redis.ZRangeArgs{Key: s.Keys.Held(), ByScore: true, Start: "-inf", Stop: until}
	return expect.Result(s.Conn.Redis.ZRangeArgs(t.Context(), due).Result()).Value(t)
}

func useOf(t testing.TB, s *redisstate.Store, key string) task.LimitUse {
	t.Helper()
	uses := expect.Result(s.Limits.LimitUses(t.Context(), key)).Value(t)
	return uses[0]
}

// At most two tasks of the key run. The others wait, in order, and come back when a running task ends.
func TestLimitAtMost(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		mustLimit(t, s, "db", running(2))
		ids := mustOpen(t, s, limitedBy("db"), limitedBy("db"), limitedBy("db"), define("x"), limitedBy("db"), limitedBy("other"))
		claims := mustClaim(t, s, 10)
		expect.MustEqual(t, claimedIDs(redisstate.ClaimResult{Claims: claims}), []int64{ids[0], ids[1], ids[3], ids[5]}, "claimed")
		x := read(t, s, ids[2])
		expect.True(t, x.WaitsForLimit(), "the third task is", x.State, "in", x.PlacedIn)
		expect.Equal(t, x.PlacedIn, "limit=db\ndefault")
		expect.Equal(t, x.State, task.Open)
		u := useOf(t, s, "db")
		expect.Equal(t, u.Running, 2)
		expect.Equal(t, u.Waiting, 2)
		expect.True(t, u.Limited, "use", u)
		expect.Equal(t, u.Limit, running(2))
		mustBeSound(t, s)
		expect.Equal(t, returnWaiting(t, s), 0, "tasks returned without room")
		mustExecute(t, s, claims[0], rules.Result{Exit: "0"})
		later := mustOpen(t, s, limitedBy("db"))[0]
		expect.Len(t, claimAll(t, s, 10), 0, "were claimed before the tasks that wait longer")
		expect.Equal(t, returnWaiting(t, s), 1, "tasks")
		expect.Equal(t, claimAll(t, s, 10), ids[2:3], "were claimed", ids[2])
		mustExecute(t, s, claims[1], rules.Result{Exit: "0"})
		returnWaiting(t, s)
		expect.Equal(t, claimAll(t, s, 10), ids[4:5], "were claimed", ids[4])
		mustLimit(t, s, "other", running(1)) // one task of this key runs since before the limit
		mustOpen(t, s, limitedBy("other"))
		expect.Len(t, claimAll(t, s, 10), 0, "the new limit does not count the running tasks … were claimed")
		must(t, s.Limits.RemoveLimit(t.Context(), "db"))
		returnWaiting(t, s)
		expect.Equal(t, claimAll(t, s, 10), []int64{later}, "without a limit … were claimed", later)
		mustBeSound(t, s)
	})
}

// A limit with much room is filled in calls of 500 tasks, without a pause between them.
func TestALargeLimitIsFilledAtOnce(t *testing.T) {
	s := connect(t, redistest.Start(t).Addr, redistest.Namespace(t))
	mustLimit(t, s, "db", running(0))
	mustOpen(t, s, slices.Repeat([]task.Properties{limitedBy("db")}, 1400)...)
	claimAll(t, s, 1)
	for c := (redisstate.ClaimResult{More: true}); c.More; {
		c = claimFor(t, s, 1, class.Offer{Programs: true})
	}
	mustLimit(t, s, "db", running(1200))
	withBudget(t, "60")
	expect.Equal(t, returnWaiting(t, s), 1200)
}

// Every end of a round gives the place back in the same step.
func TestPlacesComeBack(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, s *redisstate.Store, c redisstate.Claim){
		"executed": func(t *testing.T, s *redisstate.Store, c redisstate.Claim) {
			mustExecute(t, s, c, rules.Result{Exit: "0"})
		},
		"failed": func(t *testing.T, s *redisstate.Store, c redisstate.Claim) {
			mustExecute(t, s, c, rules.Result{Exit: "1"})
		},
		"released": func(t *testing.T, s *redisstate.Store, c redisstate.Claim) {
			m, err := rules.Release(c.Task, "so")
			mustApply(t, s, m, err)
		},
		"requeued": func(t *testing.T, s *redisstate.Store, c redisstate.Claim) {
			m, err := rules.Requeue(read(t, s, c.Task.ID), true)
			mustApply(t, s, m, err)
		},
		"timed out": func(t *testing.T, s *redisstate.Store, c redisstate.Claim) {
			m, err := rules.TimeOut(c.Task)
			mustApply(t, s, m, err)
		},
		"cancelled": func(t *testing.T, s *redisstate.Store, c redisstate.Claim) {
			mustMove(t, s, c.Task.ID, rules.Cancel)
		},
		"lost": func(t *testing.T, s *redisstate.Store, c redisstate.Claim) {
			expect.Result(s.Renew(t.Context(), 0, redisstate.LeaseRenewal{ID: c.Task.ID, Round: c.Task.Round, Claim: c.ID})).OK(t)
			mustSettle(t, s, c.Task.ID)
		},
		"moved by another program": func(t *testing.T, s *redisstate.Store, c redisstate.Claim) {
			mustExecute(t, s, c, rules.Result{Exit: "0"})
			mustSettle(t, s, c.Task.ID)
			s.Conn.Redis.ZAdd(t.Context(), s.Keys.Limited("db"), redis.Z{Member: 1, Score: 1})
			s.Conn.Redis.ZAdd(t.Context(), s.Keys.Held(), redis.Z{Member: "limit=db", Score: 1}) // the time of the next check
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *redisstate.Store) {
				mustLimit(t, s, "db", running(1))
				ids := mustOpen(t, s, limitedBy("db"), limitedBy("db"))
				claims := mustClaim(t, s, 2)
				expect.MustLen(t, claims, 1, "were claimed")
				returnWaiting(t, s) // the next check is later
				end(t, s, claims[0])
				left := s.Conn.Redis.ZCard(t.Context(), s.Keys.Limited("db")).Val()
				if left != 0 {
					expect.Equal(t, name, "moved by another program", "the limit still counts the task")
				}
				expect.Equal(t, returnWaiting(t, s), 1, "tasks")
				got := claimAll(t, s, 2)
				expect.MustLen(t, got, 1)
				if got[0] != ids[1] {
					expect.Equal(t, name, "failed")
				}
				mustBeSound(t, s)
			})
		})
	}
}

// Hostile keys are keys like others.
func TestHostileLimitKeys(t *testing.T) {
	s := newStore(t)
	for _, key := range []string{"default", "none", "limit=x", "a;b", "priority=5;limit=a", "%s*?[", "{x}", "é\u2028", "queue=a", strings.Repeat("k", 200), "a b"} {
		mustLimit(t, s, key, running(1))
		d := limitedBy(key)
		d.Priority = -7
		ids := mustOpen(t, s, limitedBy(key), d, limitedBy(key))
		claims := mustClaim(t, s, 10)
		expect.MustLen(t, claims, 1, "key", key)
		expect.MustEqual(t, claims[0].Task.ID, ids[0], "key", key)
		expect.MustEqual(t, claims[0].Task.LimitKey, key)
		for _, id := range []int64{ids[1], ids[2]} {
			x := read(t, s, id)
			expect.True(t, x.WaitsForLimit(), "key", key, "task", id, "is in", x.PlacedIn)
			expect.Equal(t, x.OpenPlace(), x.PlacedIn, "key", key, "task", id)
		}
		mustBeSound(t, s)
	}
	for _, key := range []string{"", "a\nb", "a\x00b", strings.Repeat("k", 201), "\xff"} {
		expect.Fails(t, s.Limits.SetLimit(t.Context(), key, running(1)), "", "a limit for the key", key, "was accepted")
		if d := limitedBy(key); key != "" && d.Validate() == nil {
			t.Errorf("a task with the key %q was accepted", key)
		}
	}
	all := expect.Result(s.Limits.Limits(t.Context())).Value(t)
	expect.Len(t, all, 11)
	expect.True(t, slices.IsSortedFunc(all, func(a, b task.LimitUse) int { return strings.Compare(a.Key, b.Key) }), "limits", all)
	for _, u := range all {
		expect.Equal(t, u.Running, 1)
		expect.Equal(t, u.Waiting, 2)
	}
}

// More than 10,000 limits are refused. A limit that exists can still be changed.
func TestTooManyLimits(t *testing.T) {
	s := newStore(t)
	var fields []any
	for i := range task.MaxLimits {
		fields = append(fields, fmt.Sprint("k", i), "at_most=1")
	}
	for page := range slices.Chunk(fields, 2000) {
		must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Limits(), page...).Err())
	}
	expect.Fails(t, s.Limits.SetLimit(t.Context(), "more", running(1)), "more than 10000", "one limit more")
	mustLimit(t, s, "k5", running(2))
	expect.Len(t, expect.Result(s.Limits.Limits(t.Context())).Value(t), task.MaxLimits, "limits")
}
