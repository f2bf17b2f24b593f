package redisstate_test

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
)

// A cluster simulates workers without Redis and without a clock: it goes from the end of one round to the next. Its
// claims follow the rule of kept.lua, unless keeps is false.
type cluster struct {
	random  *rand.Rand
	keeps   bool
	now     float64
	workers []*simulated
	ends    ends
	large   []class.Request     // the tasks that wait, in order; each has a requirement of its own
	small   class.Request       // behind them, small tasks wait without end
	records map[int]*keptRecord // by the number of the large task
	started map[int]bool        // the numbers of the large tasks that have started
	longest float64             // the longest time from the claim that first met a task to its start
	lapses  int                 // how often another worker was kept for a task that a worker was kept for
}

type simulated struct {
	free, whole class.Capacities
}

type keptRecord struct {
	since, till float64
	by          *simulated
}

// A roundEnd is the end of a round, which gives back what it took.
type roundEnd struct {
	at      float64
	worker  *simulated
	request class.Request
}

type ends []roundEnd

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at < e[j].at }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(roundEnd)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

const (
	simulatedWorkers = 1000
	longestRun       = 1000.0
	shortestRun      = 100.0
)

// newCluster returns a cluster whose cores are all busy with small tasks. Every tenth worker has GPUs.
func newCluster(t *testing.T, keeps bool, large ...string) *cluster {
	c := &cluster{random: rand.New(rand.NewPCG(1, 2)), keeps: keeps, records: map[int]*keptRecord{}, started: map[int]bool{}}
	c.small = expect.Result(class.ParseRequest("cpus=1")).Value(t)
	for i := range simulatedWorkers {
		offer := "cpus=8"
		if i%10 == 0 {
			offer = "cpus=8 gpus=2"
		}
		whole := class.CapacitiesOf(expect.Result(class.ParseAmounts(offer)).Value(t))
		w := &simulated{free: whole, whole: whole}
		c.workers = append(c.workers, w)
		c.claim(w)
	}
	for _, text := range large {
		c.large = append(c.large, expect.Result(class.ParseRequest(text)).Value(t))
	}
	return c
}

func (c *cluster) start(w *simulated, left class.Capacities, r class.Request) {
	w.free = left
	run := shortestRun + c.random.Float64()*(longestRun-shortestRun)
	heap.Push(&c.ends, roundEnd{c.now + run, w, r})
}

// claim fills a worker: first with the large tasks that fit, in their order, and then with small ones.
func (c *cluster) claim(w *simulated) {
	met := false
	var held class.Amounts // what the worker keeps back for a blocked task
	for n, request := range c.large {
		if c.started[n] || met {
			continue
		}
		left, alternative := w.free.Without(request)
		_, possible := w.whole.Without(request)
		switch {
		case alternative >= 0:
			c.start(w, left, request)
			c.note(n)
		case possible >= 0:
			met = true // only the first blocked task counts
			if c.meet(w, n) {
				held = request[0]
			}
		}
	}
	for {
		left, alternative := w.free.Without(c.small)
		if alternative < 0 || held != nil && left.Amounts().Of(class.CPUs) < held.Of(class.CPUs) {
			return
		}
		c.start(w, left, c.small)
	}
}

// note notes that a large task has started.
func (c *cluster) note(n int) {
	c.started[n] = true
	if r := c.records[n]; r != nil {
		c.longest = max(c.longest, c.now-r.since)
	}
	delete(c.records, n)
}

// meet decides whether a worker is kept for a blocked task.
func (c *cluster) meet(w *simulated, n int) bool {
	if !c.keeps {
		return false
	}
	r := c.records[n]
	if r == nil {
		r = &keptRecord{since: c.now}
		c.records[n] = r
	}
	if r.by != w && (c.now < 60 || r.till > c.now) { // all large tasks are due from the beginning
		return false
	}
	if r.by != nil && r.by != w {
		c.lapses++
	}
	r.by, r.till = w, c.now+60
	return true
}

// run simulates until a time. A kept worker claims every 20 s, as the answer to its claim says.
func (c *cluster) run(until float64) {
	renewed := 0.0
	for c.ends[0].at < until && len(c.started) < len(c.large) {
		end := heap.Pop(&c.ends).(roundEnd)
		c.now = end.at
		for c.now-renewed >= 20 {
			renewed += 20
			for n := range c.large {
				if r := c.records[n]; r != nil && r.by != nil {
					c.claim(r.by)
				}
			}
		}
		end.worker.free = c.giveBack(end.worker, end.request)
		c.claim(end.worker)
	}
}

// giveBack returns what a worker has free after a round. All amounts here are whole, and the first alternative was
// taken.
func (c *cluster) giveBack(w *simulated, r class.Request) (free class.Capacities) {
	for _, of := range w.free {
		of.Whole += r[0].Of(of.Name) / class.Scale
		free = append(free, of)
	}
	return free
}

// Without the rule, small tasks take each core that becomes free, so a task that needs a whole machine never starts.
func TestLargeTasksStarveWithoutTheRule(t *testing.T) {
	c := newCluster(t, false, "cpus=8")
	c.run(2 * 3600)
	expect.Len(t, c.started, 0)
}

// With it, a task that is the first one waits for a minute, until the next claim of a worker that could run it, and
// then at most for the longest round of that worker.
func TestNoTaskStarvesOnManyWorkers(t *testing.T) {
	var large []string
	for range 15 {
		large = append(large, "cpus=8", "cpus=6 gpus=2")
	}
	c := newCluster(t, true, large...)
	c.run(10 * 3600)
	expect.Len(t, c.started, len(large))
	const nextClaim = 60.0 // a hundred workers with GPUs end 1.5 rounds a second
	expect.Compare(t, c.longest, ">", 60)
	expect.Compare(t, c.longest, "<=", 60+nextClaim+longestRun)
	expect.Equal(t, c.lapses, 0, "no second worker is kept for a task")
	page := strings.Join(strings.Fields(string(expect.Result(os.ReadFile("../docs/resources.md")).Value(t))), " ")
	expect.Contains(t, page, fmt.Sprintf("%d large tasks of two kinds waited.", len(large)))
	expect.Contains(t, page, fmt.Sprintf("it started within %.0f s", c.longest), c.longest)
}
