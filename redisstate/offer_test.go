package redisstate_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// The rule which tasks a worker may claim stands in Offer.Matches, for those who explain and wake, and in ordering.lua, for claims. The
// names of programs may have any characters, also those that separate the parts of a requirement's name.
func TestClaimsFollowTheRuleOfOffers(t *testing.T) {
	queues := []string{"", "a", "tags", "handler"}
	tags := []string{"gpu", "gpus", "handler", "queue", "@a/b"}
	programs := []string{"p", "handler=p", "q;tags=gpu", "tags=gpu", ";", ",", "gpu", "default", "%d+"}
	groups := []string{"g", "g;h", ";group=g", "tags=gpu", "%d+", "g h+%3B", "handler=p"}
	onEach(t, func(t *testing.T, s *redisstate.Store) {
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
		claimed, all := 0, operations(t, 400, 10_000)
		for range all {
			d := define("x")
			d.Queue, d.Program = queues[random.IntN(len(queues))], programs[random.IntN(len(programs))]
			if random.IntN(2) == 0 {
				d.Tags = some(tags)
			}
			if random.IntN(3) > 0 {
				d.Source = ""
			}
			if random.IntN(2) == 0 {
				d.Group, d.ByGroup = groups[random.IntN(len(groups))], random.IntN(4) > 0
			}
			offer := class.Offer{Tags: some(tags), Handlers: some(programs), Programs: random.IntN(2) == 0, Anything: random.IntN(5) == 0}
			if random.IntN(3) == 0 {
				offer.Group = groups[random.IntN(len(groups))]
			}
			for _, queue := range some(append(queues[1:], class.DefaultQueue)) {
				offer.Queues = append(offer.Queues, class.QueueShare{Queue: queue})
			}
			p, ok := class.ParseRequirement(d.Requirement().String())
			p.Group = d.Requirement().Group
			expect.True(t, ok, d.Requirement())
			expect.MustEqual(t, p, d.Requirement())
			id := mustOpen(t, s, d)[0]
			want := class.Serves(&offer, d.Requirement())
			c := claimFor(t, s, 1, offer)
			expect.MustEqual(t, len(c.Claims) == 1, want, "a worker", offer, "claims a task of the requirement", d.Requirement())
			if want {
				claimed++
			}
			mustMove(t, s, id, rules.Cancel)
		}
		expect.Compare(t, claimed, ">=", all/30, "of", all)
		expect.Compare(t, claimed, "<=", all-all/30, "of", all)
	})
}

// A worker for one group gets the tasks of this group alone, by priority and age, also if many other tasks come before them. The other
// workers get them, too. Tasks without by_group are not for it.
func TestWorkersForOneGroup(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		of := func(group string, priority int) task.Properties {
			d := define("x")
			d.Group, d.ByGroup, d.Priority = group, true, priority
			return d
		}
		other := define("x")
		other.Group = "g"
		var many []task.Properties
		others := 2500 // more requirements than one claim passes
		if conntest.OnEmbedded(t) {
			others = 50 // its Lua is slow
		}
		for i := range others {
			many = append(many, of(fmt.Sprint("other", i), 1))
		}
		mustOpen(t, s, many...)
		ids := mustOpen(t, s, define("x"), other, of("g", 0), of("h", 0), of("g", 0), of("g", 7))
		offer := class.Offer{Programs: true, Group: "g"}
		var got []int64
		for range 10 {
			c := claimFor(t, s, 10, offer)
			for _, x := range c.Claims {
				got = append(got, x.Task.ID)
			}
		}
		expect.Equal(t, got, []int64{ids[5], ids[2], ids[4]}, "claimed")
		rest := 0
		for {
			c := claimFor(t, s, 1000, class.Offer{Programs: true})
			if rest += len(c.Claims); len(c.Claims) == 0 && !c.More {
				break
			}
		}
		expect.Equal(t, rest, others+3, "claimed by a worker for all groups")
		mustBeSound(t, s)
	})
}
