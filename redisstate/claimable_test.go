package redisstate_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// claimAllOf claims all tasks that a worker with this offer may claim, and returns their number.
func claimAllOf(t *testing.T, s *redisstate.Store, offer class.Offer) (n int) {
	t.Helper()
	for empty := 0; empty < 3; empty++ { // a claim looks at a bounded number of paused tasks
		r := redisstate.ClaimParams{Worker: "w", Most: 10, Lease: 60, Offer: &offer}
		claims := expect.Result(s.Claim(t.Context(), r)).Value(t).Claims
		n += len(claims)
		if len(claims) > 0 {
			empty = 0
		}
	}
	return n
}

// Claimable counts exactly the tasks that claims return.
func TestClaimableTasksAreClaimed(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		openMany(t, s, 300, func(_ int, d *task.Properties) {
			d.Queue, d.Priority = []string{"", "a", "b"}[rand.IntN(3)], rand.IntN(3)
			d.Tags = [][]string{nil, {"gpu"}, {"gpu", "ssd"}}[rand.IntN(3)]
			d.Group = fmt.Sprint("g", rand.IntN(3))
			d.ByGroup = d.Queue == "" || rand.IntN(16) == 0 // a claim passes few tasks of other queues
			if rand.IntN(4) == 0 {
				d.Source = "" // a handler runs it
			}
			if rand.IntN(4) == 0 {
				d.StartAfter = 9e9
			}
		})
		queues := []class.QueueShare{{Queue: "a"}, {Queue: "b"}, {Queue: class.DefaultQueue}}
		groups := []task.Pausable{{Group: "g0"}}
		expect.Result(s.Limits.Pause(t.Context(), "ann", slices.Concat(groups, []task.Pausable{{Queue: "b"}})...)).OK(t)
		counted := func(o class.Offer, paused task.Paused, most int) int {
			t.Helper()
			now := expect.Result(s.Now(t.Context())).Value(t)
			n := 0
			for _, c := range expect.Result(s.Counters.Claimable(t.Context(), &o, paused, now, most)).Value(t) {
				n += c.Tasks
			}
			return n
		}
		total := 0
		for _, o := range []class.Offer{
			{Programs: true, Queues: queues, Group: "g0"},
			{Programs: true, Queues: queues[2:], Group: "g1", Handlers: []string{"p"}, Tags: []string{"gpu", "ssd"}},
			{Programs: true},
			{Programs: true, Queues: queues[:1], Tags: []string{"gpu"}},
			{Handlers: []string{"p"}, Queues: queues},
			{Programs: true, Queues: queues, Tags: []string{"gpu", "ssd"}},
		} {
			want := counted(o, task.Paused{groups[0], {Queue: "b"}}, 1000)
			expect.Equal(t, counted(o, task.Paused{groups[0], {Queue: "b"}}, 2), min(2, want))
			expect.Equal(t, claimAllOf(t, s, o), want, "tasks are claimed with offer", o)
			total += want
		}
		expect.Compare(t, total, ">", 50)
		all := class.Offer{Programs: true, Handlers: []string{"p"}, Queues: queues, Tags: []string{"gpu", "ssd"}}
		expect.Equal(t, counted(all, task.Paused{task.Everything}, 1000), 0)
		expect.Compare(t, counted(all, nil, 1000), ">", 0)
	})
}
