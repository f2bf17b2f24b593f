package redisstate_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// asking returns the properties of a task with a request.
func asking(t testing.TB, request string) task.Properties {
	t.Helper()
	d := define("x")
	for _, p := range task.PropertyTable {
		if p.Name == "resources" {
			expect.NoError(t, p.Set(&d, request), request)
		}
	}
	return d
}

// capacities returns what a worker with an offer has free.
func capacities(t testing.TB, offer string, plain int64) class.Capacities {
	t.Helper()
	all := expect.Result(class.ParseAmounts(offer)).Value(t)
	return append(class.CapacitiesOf(all), class.CapacityOf(class.Amount{Name: class.Slots, Units: plain * class.Scale}))
}

// claimWith claims tasks for a worker that has some resources free.
func claimWith(t testing.TB, s *redisstate.Store, most int, free class.Capacities) redisstate.ClaimResult {
	t.Helper()
	return expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: most, Lease: 60, Free: free, Whole: free})).Value(t)
}

func requests(c redisstate.ClaimResult) (all []string) {
	for _, claim := range c.Claims {
		all = append(all, claim.Task.Resources)
	}
	return all
}

// One call hands out no more than is free, in the order of the tasks. The first alternative that fits counts.
func TestClaimsGetWhatFits(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		for _, request := range []string{
			"cpus=3", "cpus=3", "", "cpus=2 gpus=1", "cpus=0.5 gpus=0.5", "gpus=1 or cpus=4", "licence=1", "cpus=0.5 gpus=0.5", "", "memory=2G", "cpus=0 memory=1G",
		} {
			mustOpen(t, s, asking(t, request))
		}
		c := claimWith(t, s, 100, capacities(t, "cpus=8 gpus=2 memory=1G", 1))
		expect.Equal(t, requests(c), []string{"cpus=3", "cpus=3", "", "cpus=0.5 gpus=0.5", "cpus=0.5 gpus=0.5", "cpus=0 memory=1G"})
		c = claimWith(t, s, 100, capacities(t, "cpus=2 gpus=1", 0))
		expect.Equal(t, requests(c), []string{"cpus=2 gpus=1"})
		c = claimWith(t, s, 100, capacities(t, "cpus=3 gpus=0.5", 0))
		expect.Len(t, requests(c), 0)
		c = claimWith(t, s, 100, capacities(t, "cpus=4 gpus=0.5", 0))
		expect.Equal(t, requests(c), []string{"cpus=1 gpus=1 or cpus=4"})
		c = claimFor(t, s, 100, class.Offer{Programs: true})
		expect.Equal(t, requests(c), []string{""}, "a worker without resources claims only tasks that ask for nothing")
		c = claimWith(t, s, 100, capacities(t, "cpus=2 licence=1 memory=4G", 5))
		expect.Equal(t, requests(c), []string{"cpus=1 licence=1", "cpus=1 memory=2G"})
	})
}

// Without a requirement in the namespace, the fast path of claims also hands out no more than fits.
func TestPlainClaimsGetWhatFits(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		for range 9 {
			mustOpen(t, s, define("x"))
		}
		expect.Len(t, claimWith(t, s, 100, capacities(t, "cpus=3", 5)).Claims, 3)
		expect.Len(t, claimWith(t, s, 100, capacities(t, "cpus=3", 1)).Claims, 1)
		expect.Len(t, claimWith(t, s, 100, capacities(t, "cpus=0 memory=1G", 5)).Claims, 0)
		expect.Len(t, claimWith(t, s, 2, capacities(t, "cpus=8", 5)).Claims, 2)
		expect.Len(t, claimFor(t, s, 100, class.Offer{Programs: true}).Claims, 3)
	})
}

// A worker that soon stops claims no task that takes longer. The min_time of 90 s is rounded up to 96 s.
func TestTimeLeft(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		d := define("x")
		d.MinTime = 90
		id := mustOpen(t, s, d)[0]
		claim := func(left task.Seconds) []int64 {
			return claimedIDs(expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 1, Lease: 60, TimeLeft: left})).Value(t))
		}
		for _, left := range []task.Seconds{0.5, 90, 95.9} {
			expect.Len(t, claim(left), 0, left)
		}
		expect.Equal(t, claim(96), []int64{id})
		expect.Equal(t, mustOpen(t, s, d), claim(0), "no time limit")
	})
}

// The rule in Lua is that of Capacities: random tasks are claimed exactly if they fit, and what is left is the same.
func TestFittingFollowsCapacities(t *testing.T) {
	texts := []string{
		"", "cpus=1", "cpus=2.5", "cpus=0.25", "cpus=0 gpus=0.3333", "gpus=1", "gpus=0.5", "gpus=1.5 or cpus=3", "licence=0.5", "memory=1G",
		"memory=1023M cpus=0", "tpus=1 or licence=2 or cpus=0.1", "a.b-c/d_9=1",
	}
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		t.Log("seed", seed)
		claimed := 0
		for range operations(t, 40, 2000) {
			free := capacities(t, "cpus=4 gpus=2 licence=3 memory=3G", 2)
			var ids []int64
			var want []int64
			for range 12 {
				d := asking(t, texts[random.IntN(len(texts))])
				ids = append(ids, mustOpen(t, s, d)...)
				left, alternative := free.Without(d.Request())
				if alternative >= 0 {
					free, want = left, append(want, ids[len(ids)-1])
				}
			}
			got := claimedIDs(claimWith(t, s, 100, capacities(t, "cpus=4 gpus=2 licence=3 memory=3G", 2)))
			expect.MustEqual(t, fmt.Sprint(got), fmt.Sprint(want), "left", free)
			claimed += len(got)
			for _, id := range ids {
				tasks := read(t, s, id)
				if tasks.State == task.Open {
					mustMove(t, s, id, rules.Cancel)
				}
			}
		}
		expect.Compare(t, claimed, ">", 30)
	})
}
