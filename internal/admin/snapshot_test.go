package admin

import (
	"fmt"
	"testing"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// The Facts about 10,000 queues and 1,000 workers need few comparisons, because many workers have the same offer.
func TestUnservedOfManyQueuesAndWorkers(t *testing.T) {
	f := fleet{at: testNow}
	for i := range 1000 {
		w := working(fmt.Sprint("w", i))
		w.Offer.Queues = []class.QueueShare{{Queue: fmt.Sprint("q", i%3)}}
		f.workers = append(f.workers, w)
	}
	gone := working("gone")
	gone.State, gone.Offer.Queues = presence.WorkerGone, []class.QueueShare{{Queue: "q3"}}
	f.workers = append(f.workers, gone)
	expect.Equal(t, len(f.offers()), 3, "different offers")
	var queues []string
	for i := range 10_000 {
		queues = append(queues, fmt.Sprint("queue=q", i))
	}
	facts := f.unservedOf(queues)
	expect.MustLen(t, facts, 9997)
	expect.MustEqual(t, facts[0].About, "queue=q3")
	expect.Equal(t, facts[0].Code, FactUnserved)
}

// The same Facts have the same code and text in Explain, Diagnose and Watch.
func TestFactsAgree(t *testing.T) {
	v := healthy()
	v.server, v.workers = 0, nil
	diagnosed := map[FactCode]Fact{}
	for _, d := range v.diagnose() {
		diagnosed[d.Code] = d.Fact
	}
	c := waiting(func(c *situation) { c.server, c.workers = 0, nil })
	for _, check := range c.open() {
		d := diagnosed[check.Code]
		if check.State == Blocked {
			expect.Equal(t, d.Text, check.Text)
			expect.Equal(t, d.Fix.Text, check.Fix.Text)
		}
	}
	expect.NotEqual(t, diagnosed[FactNoServer].Code, "")
	expect.NotEqual(t, diagnosed[FactNoWorker].Code, "")
}

// A fleet counts workers and slots by the rules in its doc comment. It never counts more busy slots than slots.
func TestFleet(t *testing.T) {
	worker := func(state string, silent bool, slots int, runs ...int64) presence.WorkerStatus {
		w := presence.WorkerStatus{WorkerInfo: presence.WorkerInfo{State: state, Slots: slots, Runs: runs, Lease: 30}, Seen: testNow}
		if silent {
			w.Seen -= 100
		}
		return w
	}
	ordered := worker("working", false, 4, 1)
	ordered.Drained = "someone"
	for name, c := range map[string]struct {
		workers       []presence.WorkerStatus
		running, lost int
		want          string // "alive claiming: busy/slots free, states"
	}{
		"none":            {nil, 2, 0, "0 0: 0/0 0 map[]"},
		"one":             {[]presence.WorkerStatus{worker("working", false, 3, 1, 2)}, 2, 0, "1 1: 2/3 1 map[working:1]"},
		"heartbeat late":  {[]presence.WorkerStatus{worker("working", false, 3)}, 2, 0, "1 1: 2/3 1 map[working:1]"},
		"running late":    {[]presence.WorkerStatus{worker("working", false, 3, 1, 2)}, 0, 0, "1 1: 0/3 1 map[working:1]"},
		"one drains":      {[]presence.WorkerStatus{worker("working", false, 3, 5), worker("draining", false, 4, 1, 2)}, 3, 0, "2 1: 1/3 2 map[draining:1 working:1]"},
		"one must drain":  {[]presence.WorkerStatus{worker("working", false, 3), ordered}, 1, 0, "2 1: 0/3 3 map[working:2]"},
		"one starts":      {[]presence.WorkerStatus{worker("working", false, 3), worker("starting", false, 4)}, 0, 0, "2 1: 0/3 3 map[starting:1 working:1]"},
		"one is silent":   {[]presence.WorkerStatus{worker("working", false, 3), worker("working", true, 4, 1, 2)}, 5, 2, "1 1: 3/3 0 map[silent:1 working:1]"},
		"one is gone":     {[]presence.WorkerStatus{worker("working", false, 3), worker("gone", false, 4, 1, 2)}, 1, 0, "1 1: 1/3 2 map[working:1]"},
		"more than slots": {[]presence.WorkerStatus{worker("working", false, 3)}, 5, 0, "1 1: 3/3 0 map[working:1]"},
		"more lost":       {[]presence.WorkerStatus{worker("working", false, 3)}, 1, 2, "1 1: 0/3 3 map[working:1]"},
	} {
		f := fleet{at: testNow, workers: c.workers, running: c.running, lost: c.lost}
		got := f.count()
		expect.Equal(t, fmt.Sprintf("%d %d: %d/%d %d %v", got.alive, got.claiming, got.busy, got.slots, got.free, got.states), c.want, name)
	}
}
