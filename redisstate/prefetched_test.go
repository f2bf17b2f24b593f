package redisstate_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// prefetch claims tasks for a worker w: most to start at once, and further ones to prefetch.
func prefetch(t *testing.T, s *redisstate.Store, most, further int) []redisstate.Claim {
	t.Helper()
	r := redisstate.ClaimParams{Worker: "w", Most: most, Prefetch: further, Lease: 60}
	return expect.Result(s.Claim(t.Context(), r)).Value(t).Claims
}

// openMany opens n tasks with the inputs 0, 1, …
func openMany(t *testing.T, s *redisstate.Store, n int, change func(i int, d *task.Properties)) {
	t.Helper()
	definitions := make([]task.Properties, n)
	for i := range definitions {
		definitions[i] = define(fmt.Sprint(i))
		change(i, &definitions[i])
	}
	mustOpen(t, s, definitions...)
}

func asIs(int, *task.Properties) {}

// A worker prefetches at most half of its share of the open tasks. Tasks with a place count, too. The tasks are so few
// that one call of the script has time for them.
func TestShareOfPrefetchedTasks(t *testing.T) {
	for workers, want := range map[int]int{0: 2 + 12, 1: 2 + 12, 4: 2 + 3, 100: 2} {
		for _, queue := range []string{"", "q"} {
			t.Run(fmt.Sprint(workers, queue), func(t *testing.T) {
				s := newStore(t)
				now := expect.Result(s.Now(t.Context())).Value(t)
				for i := range workers {
					seen := redis.Z{Score: float64(now), Member: fmt.Sprint("w", i)}
					expect.NoError(t, s.Conn.Redis.ZAdd(t.Context(), s.Keys.Workers(), seen).Err())
				}
				openMany(t, s, 26, func(_ int, d *task.Properties) { d.Queue = queue })
				offer := &class.Offer{Queues: []class.QueueShare{{Queue: "q"}, {Queue: class.DefaultQueue}}, Programs: true}
				r := redisstate.ClaimParams{Worker: "w", Most: 2, Prefetch: 500, Lease: 60, Offer: offer}
				c := expect.Result(s.Claim(t.Context(), r)).Value(t)
				expect.Equal(t, len(c.Claims), want, "with", workers, "workers, and the queue", queue)
				for i, claim := range c.Claims {
					expect.Equal(t, claim.Task.Current().Prefetched, i >= 2, i)
					expect.Equal(t, read(t, s, claim.Task.ID).Current().Prefetched, i >= 2, "in Redis", i)
				}
				mustBeSound(t, s)
			})
		}
	}
}

// A claim prefetches no task that is special, and takes no later task in its place.
func TestOnlyPlainTasksArePrefetched(t *testing.T) {
	for name, change := range map[string]func(*task.Properties){
		"a timeout":                      func(d *task.Properties) { d.Timeout = 100 },
		"a limit key":                    func(d *task.Properties) { d.LimitKey = "k" },
		"a timeout, in a queue":          func(d *task.Properties) { d.Timeout, d.Priority = 100, 1 },
		"a limit key and a later expiry": func(d *task.Properties) { d.LimitKey, d.EndBefore = "k", 9e9 },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			openMany(t, s, 100, func(i int, d *task.Properties) {
				d.Priority = 1
				if i == 5 {
					change(d)
				}
				if name == "a timeout" {
					d.Priority = 0
				}
			})
			expect.Equal(t, inputs(prefetch(t, s, 1, 50)), "0 1 2 3 4")
			expect.Equal(t, inputs(prefetch(t, s, 1, 2)), "5 6 7")
		})
	}
}

func TestNoReleasedTaskIsPrefetched(t *testing.T) {
	s := newStore(t)
	openMany(t, s, 1, asIs)
	m, err := rules.Release(mustClaim(t, s, 1)[0].Task, "so")
	mustApply(t, s, m, err)
	openMany(t, s, 99, asIs)
	expect.Len(t, prefetch(t, s, 0, 50), 0, "a released task is the first one")
	expect.Equal(t, inputs(prefetch(t, s, 1, 1)), "0 0")
}

// A task that is given back returns to its position in the queue. Nothing is counted, and its claim has ended.
func TestUnclaim(t *testing.T) {
	for _, queue := range []string{"", "q"} {
		t.Run(queue, func(t *testing.T) {
			s := newStore(t)
			offer := class.Offer{Queues: []class.QueueShare{{Queue: "q"}, {Queue: class.DefaultQueue}}, Programs: true}
			openMany(t, s, 40, func(_ int, d *task.Properties) { d.Queue = queue })
			r := redisstate.ClaimParams{Worker: "w", Most: 1, Prefetch: 3, Lease: 60, Offer: &offer}
			c := expect.Result(s.Claim(t.Context(), r)).Value(t)
			expect.MustEqual(t, inputs(c.Claims), "0 1 2 3")
			openMany(t, s, 1, func(_ int, d *task.Properties) { d.Input, d.Queue = "later", queue })
			for _, claim := range c.Claims[1:] {
				m, err := rules.Unclaim(claim.Task, "it stops")
				mustApply(t, s, m, err)
			}
			given := read(t, s, 2)
			expect.Equal(t, given.State, task.Open)
			expect.Equal(t, fmt.Sprint(given.Round, given.Releases, given.Losses), "0 0 0")
			expect.Equal(t, given.Current().Claim+given.Current().Worker, "")
			mustBeSound(t, s)
			again := claimFor(t, s, 4, offer)
			expect.Equal(t, inputs(again.Claims), "1 2 3 4")
			m, err := rules.Execute(c.Claims[1].Task, c.Claims[1].ID, rules.Result{Exit: "0"})
			expect.NoError(t, err)
			late := expect.Result(s.Execute(t.Context(), "w", m)).Value(t)
			expect.Fails(t, late[0].Err, "execute task 2: it is running in round 0")
			mustBeSound(t, s)
		})
	}
}

// lapse ends the leases of claims, and settles their tasks.
func lapse(t *testing.T, s *redisstate.Store, claims []redisstate.Claim) {
	t.Helper()
	for _, c := range claims {
		end := redisstate.LeaseRenewal{ID: c.Task.ID, Round: c.Task.Round, Claim: c.ID}
		renewed := expect.Result(s.Renew(t.Context(), 0, end)).Value(t)
		expect.NoError(t, renewed.Lost[0])
	}
	settleAll(t, s)
}

func settleAll(t *testing.T, s *redisstate.Store) {
	t.Helper()
	moves := expect.Result(settlements(t.Context(), s, 100)).Value(t)
	for _, o := range expect.Result(s.Apply(t.Context(), "server", redisstate.UnitsOf(moves)...)).Value(t) {
		expect.NoError(t, o.Err)
	}
}

// Of the tasks of a worker that is gone, those count as lost that it has not prefetched, that it has reported to run,
// and that must not run after a loss. Another prefetched task is never prefetched again, so that the next loss counts.
func TestTasksOfAWorkerThatIsGone(t *testing.T) {
	s := newStore(t)
	openMany(t, s, 7, func(i int, d *task.Properties) {
		if i == 3 {
			d.MaxLosses = 0
		}
	})
	c := prefetch(t, s, 1, 3)
	expect.MustEqual(t, inputs(c), "0 1 2 3")
	runs := redisstate.LeaseRenewal{ID: c[2].Task.ID, Claim: c[2].ID, Report: redisstate.LiveReport{Runs: true}}
	expect.Result(s.Renew(t.Context(), 60, runs)).OK(t)
	lapse(t, s, c)
	for i, want := range []string{"open 1 1", "open 0 0", "open 1 1", "failed 0 1"} {
		got := read(t, s, c[i].Task.ID)
		expect.Equal(t, fmt.Sprintf("%s %d %d", got.State, got.Round, got.Losses), want, i)
	}
	mustBeSound(t, s)
	expect.Len(t, prefetch(t, s, 0, 50), 0, "the first task was prefetched before")
	again := prefetch(t, s, 1, 0)
	expect.MustEqual(t, inputs(again), "1")
	expect.True(t, !again[0].Task.Current().Prefetched, "it is prefetched again")
	lapse(t, s, again)
	expect.Equal(t, read(t, s, c[1].Task.ID).Losses, 1, "the next loss")
	mustBeSound(t, s)
}
