package admin

import (
	"fmt"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// The Facts about 10,000 queues and 1,000 workers need few comparisons, because many workers have the same offer.
func TestUnservedOfManyQueuesAndWorkers(t *testing.T) {
	f := fleet{at: testNow}
	for i := range 1000 {
		w := working(fmt.Sprint("w", i))
		w.Offer.Queues = []tdf.QueueShare{{Queue: fmt.Sprint("q", i%3)}}
		f.workers = append(f.workers, w)
	}
	gone := working("gone")
	gone.State, gone.Offer.Queues = workerGone, []tdf.QueueShare{{Queue: "q3"}}
	f.workers = append(f.workers, gone)
	expect.Equal(t, len(f.offers()), 3, "different offers")
	var queues []string
	for i := range 10_000 {
		queues = append(queues, fmt.Sprint("queue=q", i))
	}
	facts := f.unservedOf(queues)
	expect.True(t, len(facts) == 9997 && facts[0].About == "queue=q3" && facts[0].Code == FactUnserved, len(facts), "facts, first", facts[0])
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
		if d := diagnosed[check.Code]; check.State == Blocked && (d.Text != check.Text || d.Fix.Text != check.Fix.Text) {
			t.Errorf("%s: explain says %q, and doctor %q", check.Code, check.Text, d.Text)
		}
	}
	expect.True(t, diagnosed[FactNoServer].Code != "" && diagnosed[FactNoWorker].Code != "", diagnosed)
}
