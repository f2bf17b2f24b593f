package counts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// An Activity has what a namespace has counted of one queue. docs/metrics.md lists the names of the counts.
type Activity struct {
	// [class.DefaultQueue] for the tasks without a queue, and [OtherQueues] for the queues without counts of their own
	Queue  string
	Counts map[string]int64
}

// OtherQueues has the counts of the queues that have none of their own.
const OtherQueues = "other"

// The beginnings of the names of counts. A transition's name goes on with its verb, a colon and its new state, and a
// span's name with the upper bound of its length, or with spanSum. The name of a find of the audit goes on with the
// kind of inconsistency.
const (
	CountTransition = "made:"
	CountWait       = "wait:" // from the time at which a task could first be claimed to its first claim
	CountRun        = "run:"  // the run time of a round's program or handler
	CountLife       = "life:" // from the opening of a task to its end
	CountFind       = "found:"

	// Counts of workers, by interfaces that count them.
	CountRegistered = "registered"
	CountDied       = "died"
	CountForgotten  = "forgotten" // of those that have died

	spanSum = "sum" // of all spans, in microseconds
)

// spanBounds are the upper bounds of the counts of spans.
var spanBounds = []task.Seconds{0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 1800, 7200, 43_200, 172_800, task.Forever}

// SpanBounds returns the upper bounds of the counts of spans. The last one is [task.Forever].
func SpanBounds() []task.Seconds { return slices.Clone(spanBounds) }

// spanNames are the names of the counts of each kind of span. They are made only once, because workers count several
// spans of each task.
var spanNames = map[string]spanCounts{
	CountWait: spanCountsOf(CountWait), CountRun: spanCountsOf(CountRun),
	CountLife: spanCountsOf(CountLife),
}

type spanCounts struct {
	upTo []string // in the order of spanBounds
	sum  string
}

func spanCountsOf(kind string) spanCounts {
	names := spanCounts{sum: kind + spanSum}
	for _, bound := range spanBounds {
		names.upTo = append(names.upTo, kind+bound.String())
	}
	return names
}

// Spans returns how many spans of a kind are as long as each of [SpanBounds] or shorter, and the sum of all spans.
func (a *Activity) Spans(kind string) (upTo []uint64, sum task.Seconds) {
	n := uint64(0)
	names := spanNames[kind]
	for _, name := range names.upTo {
		n += uint64(a.Counts[name])
		upTo = append(upTo, n)
	}
	return upTo, task.Seconds(a.Counts[names.sum]) / 1e6
}

// Transitions calls a function for each counted transition: its verb, and the state to which it led, or [task.None] if
// it removed the task.
func (a *Activity) Transitions(each func(verb rules.Verb, to task.State, n int64)) {
	for name, n := range a.Counts {
		if made, ok := strings.CutPrefix(name, CountTransition); ok {
			verb, to, _ := strings.Cut(made, ":")
			each(rules.Verb(verb), task.State(to), n)
		}
	}
}

// A made is a counted transition.
type made struct {
	verb rules.Verb
	to   task.State
}

// transitionNames are the names of the counts of transitions.
var transitionNames = func() map[made]string {
	names := map[made]string{}
	for _, t := range rules.Transitions {
		names[made{t.Verb, t.To}] = CountTransition + string(t.Verb) + ":" + string(t.To)
	}
	return names
}()

// TransitionName returns "" for a change that is no transition.
func TransitionName(verb rules.Verb, to task.State) string { return transitionNames[made{verb, to}] }

// Limits of the counts in Redis.
const (
	mostCounted = 1000           // queues with counts of their own
	keepCounts  = 30 * 24 * 3600 // seconds after which counts expire that did not grow
)

// An ActivityCounter remembers the counts of queues, for a caller that reads them again and again, such as the metrics.
// The zero value remembers none.
type ActivityCounter struct{ rotation[map[string]int64] }

const readActivity = "read the counts of queues"

// Activity returns the counts of the queues with the most transitions, at most the given number, ordered by name. The
// counts of all other queues are those of [OtherQueues]. Activity includes what this client has counted and not added
// to Redis yet. The caller must not change the counts.
//
// The first call with a counter reads all counts. A further call reads those of the queues with the most transitions,
// and of 350 others, so that each of the thousand queues has its turn at the latest at every third call. The counts of
// [OtherQueues] do not fall because of this.
func (s *Counters) Activity(ctx context.Context, c *ActivityCounter, most int) ([]Activity, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	release, err := s.tally.hold(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", readActivity, err)
	}
	defer release()
	names, err := conn.Ask(ctx, s.Conn, readActivity, func(r redis.Cmdable) *redis.StringSliceCmd {
		return r.ZRevRange(ctx, s.Conn.Keys.Activity(), 0, mostCounted+1)
	})
	if err != nil {
		return nil, err
	}
	busiest := slices.Clone(names[:min(len(names), most)])
	slices.Sort(names)
	all := s.tally.unsent()
	// Counts that the client has not sent yet move to those of their queue, or to those of OtherQueues. So both are
	// always read.
	always := slices.AppendSeq(append(busiest, class.DefaultQueue, OtherQueues), maps.Keys(all))
	always = slices.DeleteFunc(always, func(name string) bool {
		_, stored := slices.BinarySearch(names,
			name)
		return !stored
	})
	turn, next := c.turn(always, names, func(string) int { return 1 })
	stored, err := conn.AskEach(ctx, s.Conn, readActivity, turn,
		func(p redis.Pipeliner, name string) *redis.MapStringStringCmd {
			return p.HGetAll(ctx, s.Conn.Keys.ActivityOf(name))
		})
	if err != nil {
		return nil, err
	}
	for i, name := range turn {
		counts := all[name]
		if counts == nil {
			counts = make(map[string]int64, len(stored[i].Val()))
		}
		for count, text := range stored[i].Val() {
			n, _ := strconv.ParseInt(text, 10, 64) // 0 for a text of another program
			counts[count] += max(n, 0)
		}
		all[name] = counts
	}
	for _, name := range names {
		if all[name] == nil {
			all[name] = c.last[name]
		}
	}
	maps.DeleteFunc(all, func(_ string, counts map[string]int64) bool { return len(counts) == 0 })
	c.last, c.next = maps.Clone(all), next
	return all.busiest(most), nil
}
