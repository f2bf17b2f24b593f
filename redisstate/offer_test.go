package redisstate

import (
	"math/rand/v2"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// The rule which tasks a worker may claim stands in Offer.Matches, for those who explain and wake, and in ordering.lua, for claims. The
// names of programs may have any characters, also those that separate the parts of a partition's name.
func TestClaimsFollowTheRuleOfOffers(t *testing.T) {
	queues := []string{"", "a", "tags", "handler"}
	tags := []string{"gpu", "gpus", "handler", "queue", "@a/b"}
	programs := []string{"p", "handler=p", "q;tags=gpu", "tags=gpu", ";", ",", "gpu", "default", "%d+"}
	onEach(t, func(t *testing.T, s *Store) {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		t.Log("seed", seed)
		some := func(of []string) (chosen []string) {
			for _, x := range of {
				if random.IntN(2) == 0 {
					chosen = append(chosen, x)
				}
			}
			return chosen
		}
		claimed := 0
		for range 300 {
			d := define("x")
			d.Queue, d.Program = queues[random.IntN(len(queues))], programs[random.IntN(len(programs))]
			if random.IntN(2) == 0 {
				d.Tags = some(tags)
			}
			if random.IntN(3) > 0 {
				d.Source = ""
			}
			offer := tdf.Offer{Tags: some(tags), Handlers: some(programs), Programs: random.IntN(2) == 0, Anything: random.IntN(5) == 0}
			for _, queue := range some(append(queues[1:], tdf.DefaultQueue)) {
				offer.Queues = append(offer.Queues, tdf.QueueShare{Queue: queue})
			}
			id := mustOpen(t, s, d)[0]
			want := offer.Matches(d.Partition())
			c := claimFor(t, s, 1, offer)
			expect.MustEqual(t, len(c.Claims) == 1, want, "a worker", offer, "claims a task of the partition", d.Partition())
			if want {
				claimed++
			}
			mustMove(t, s, id, (*tdf.Task).Cancel)
		}
		expect.True(t, claimed >= 10 && claimed <= 290, "of 300 tasks", claimed, "were claimed")
	})
}
