package counts

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// activities are counts by the name of their queue, and their own name.
type activities map[string]map[string]int64

func (a activities) add(queue, name string, n int64) {
	of := a[queue]
	if of == nil {
		of = map[string]int64{}
		a[queue] = of
	}
	of[name] += n
}

// transitions returns the number of counted transitions of a queue.
func (a activities) transitions(queue string) (n int64) {
	for name, count := range a[queue] {
		if strings.HasPrefix(name, CountTransition) {
			n += count
		}
	}
	return n
}

// busiest returns the counts of the queues with the most transitions, and those of all others together, ordered by
// name. It changes a, but not the counts of its queues.
func (a activities) busiest(most int) (all []Activity) {
	queues := slices.DeleteFunc(slices.Sorted(maps.Keys(a)), func(queue string) bool { return queue == OtherQueues })
	transitions := map[string]int64{}
	for _, queue := range queues {
		transitions[queue] = a.transitions(queue)
	}
	slices.SortStableFunc(queues, func(x, y string) int { return cmp.Compare(transitions[y], transitions[x]) })
	others := map[string]int64{}
	for _, queue := range append(queues[min(len(queues), most):], OtherQueues) {
		for name, n := range a[queue] {
			others[name] += n
		}
		delete(a, queue)
	}
	if len(others) > 0 {
		a[OtherQueues] = others
	}
	for _, queue := range slices.Sorted(maps.Keys(a)) {
		all = append(all, Activity{queue, a[queue]})
	}
	return all
}

const (
	tallyPause  = time.Second // between the first count and the call that adds it to those in Redis
	tallyAtOnce = 50          // queues in one call
	lastTally   = time.Second // the time for the last call, when the client closes
)

// A tally has what this client has counted, and not yet added to the counts in Redis. If the process is killed before
// that, these counts are lost. The zero tally counts nothing.
type tally struct {
	mu     sync.Mutex
	ctx    context.Context // of the calls; nil if the client does not count
	end    context.CancelFunc
	send   func() // adds the counts to those in Redis
	counts activities
	next   *time.Timer // of the next call; nil if none is due
	closed bool

	// has an element while counts are sent, or counts in Redis are read; nil if the client does not count
	sending chan struct{}
	calls   uint64
}

// KeepCounts makes the client count what its calls do to tasks, and add the counts to those in Redis (docs/metrics.md):
// a second after the first of them, and when it closes.
func (s *Counters) KeepCounts() {
	t := &s.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ctx, t.end = context.WithCancel(context.Background())
	t.send = s.SendCounts
	t.counts, t.sending = activities{}, make(chan struct{}, 1)
}

// EndCounts adds the last counts to those in Redis.
func (s *Counters) EndCounts() {
	if !s.tally.close() {
		return
	}
	defer time.AfterFunc(lastTally, s.tally.end).Stop()
	s.SendCounts()
	s.Conn.Redis.Unlink(s.tally.ctx, s.Conn.Keys.Counted(s.Conn.Boot())) // best effort: it expires anyway
	s.tally.end()
}

// close ends the counting. It returns false if the client does not count.
func (t *tally) close() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx == nil || t.closed {
		return false
	}
	t.closed = true
	if t.next != nil {
		t.next.Stop()
	}
	return true
}

// Count adds n to a count of a queue.
func (s *Counters) Count(queue, name string, n int64) { s.tally.count(queue, name, n) }

// CountSpan counts a span of a kind, such as CountRun.
func (s *Counters) CountSpan(queue, kind string, span task.Seconds) {
	span = min(max(span, 0), 1e10) // above, a sum of microseconds might overflow
	names := spanNames[kind]
	s.Count(queue, names.upTo[slices.IndexFunc(spanBounds, func(bound task.Seconds) bool { return span <= bound })], 1)
	s.Count(queue, names.sum, int64(span*1e6))
}

// count adds n to a count of a queue.
func (t *tally) count(queue, name string, n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx == nil || t.closed || n == 0 {
		return
	}
	t.counts.add(cmp.Or(queue, class.DefaultQueue), name, n)
	if t.next == nil {
		t.next = time.AfterFunc(tallyPause, t.send)
	}
}

// take removes and returns the counts.
func (t *tally) take() activities {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts := t.counts
	t.counts, t.next = activities{}, nil
	return counts
}

// hold keeps the client from sending counts until release is called, so that none of them moves to Redis while a caller
// adds up both. It waits while counts are sent, until ctx ends.
func (t *tally) hold(ctx context.Context) (release func(), err error) {
	t.mu.Lock()
	sending := t.sending
	t.mu.Unlock()
	if sending == nil {
		return func() {}, nil
	}
	select {
	case sending <- struct{}{}:
		return func() { <-sending }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// unsent returns a copy of the counts.
func (t *tally) unsent() activities {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts := activities{}
	for queue, of := range t.counts {
		counts[queue] = maps.Clone(of)
	}
	return counts
}

// SendCounts adds the counts to those in Redis. It waits while Redis is away. If Redis refuses a call, its counts are
// lost.
func (s *Counters) SendCounts() {
	t := &s.tally
	t.sending <- struct{}{}
	defer func() { <-t.sending }()
	counts := t.take()
	keys := []string{s.Conn.Keys.Activity(), s.Conn.Keys.Counted(s.Conn.Boot())}
	for queues := range slices.Chunk(slices.Sorted(maps.Keys(counts)), tallyAtOnce) {
		t.calls++
		e := &conn.Args{All: []any{t.calls, s.Conn.Keys.ActivityPrefix(), mostCounted, OtherQueues, keepCounts}}
		for _, queue := range queues {
			addCounts(e, queue, counts)
		}
		_, err := s.Conn.Run(t.ctx, "count tasks", lua.Activity, keys, e.All, conn.IsText)
		if err != nil {
			s.Conn.Log.Debug("counts of tasks are lost", "error", err)
		}
	}
}

func addCounts(e *conn.Args, queue string, all activities) {
	counts := all[queue]
	e.Add(queue, strconv.FormatInt(all.transitions(queue), 10))
	e.Count(len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		e.Add(name, strconv.FormatInt(counts[name], 10))
	}
}
