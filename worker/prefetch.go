package worker

import (
	"errors"
	"time"
)

// A worker whose runs are short would wait for Redis as long as it works. So it prefetches tasks: it claims more than
// it has free slots, and each slot starts its next task without a call. The results travel together (docs/lifecycle.md,
// "Prefetched tasks").
const (
	shortRun      = 20 * time.Millisecond // the mean of the last runs, from which nothing is prefetched
	prefetchedFor = 50 * time.Millisecond // the expected work that a slot has prefetched
	reportedAfter = 25 * time.Millisecond // a result waits for others once or twice as long
	lastRuns      = 16                    // the runs that count
	refillAt      = 2                     // claims when this part of its goal is left, so that slots work meanwhile
	mostPerSlot   = 100                   // prefetched tasks
	mostInStock   = 1000                  // prefetched tasks of all slots
)

// errGivenBack ends the execution of a prefetched task that the worker gives back.
var errGivenBack = errors.New("its worker has claimed it too early")

// A stock knows how long the rounds take for which a worker prefetches tasks. The lock of all fields is the
// supervisor's mu.
type stock struct {
	short, most time.Duration // shortRun and prefetchedFor, except in tests

	runs  [lastRuns]time.Duration // of the last rounds that ended
	n     int                     // how many rounds have ended
	began map[int]time.Time       // when the running round of each slot began
}

// ended records that the round of a slot has ended. ran says whether it ran to its end.
func (k *stock) ended(slot int, ran bool) {
	if ran {
		k.runs[k.n%lastRuns] = time.Since(k.began[slot])
		k.n++
	}
	delete(k.began, slot)
}

// A supply is what decides how many tasks a claim prefetches.
type supply struct {
	slots, stocked int           // stocked tasks have been prefetched and have not started
	runs           int           // how many rounds have ended
	mean           time.Duration // of the last ones
	short, most    time.Duration // see stock
	long           bool          // a round takes longer than all prefetched tasks of its slot should take
	halted         bool          // the worker must prefetch nothing now
}

// supply returns the present supply. A worker that offers resources prefetches nothing, because a task holds its share
// only while it runs. The HTTP API has no such claims.
func (x *exchange) supply() supply {
	never := x.pool != nil || x.once.Load() || x.cfg.SleepAfterSuccess > 0 || x.cfg.API.URL != ""
	halted := never || x.passing || x.mayNotPassOn()
	x.mu.Lock()
	defer x.mu.Unlock()
	k, sum := &x.stock, time.Duration(0)
	for _, d := range k.runs {
		sum += d
	}
	y := supply{
		slots: x.slots(), stocked: len(x.tasks), runs: k.n, mean: sum / lastRuns, short: k.short, most: k.most,
		halted: halted,
	}
	for _, began := range k.began {
		y.long = y.long || time.Since(began) > k.most
	}
	return y
}

// goal returns how many tasks the slots together should have prefetched.
func (y supply) goal() int {
	if y.runs < lastRuns || y.mean >= y.short {
		return 0
	}
	return min(y.slots*min(mostPerSlot, int(y.most/max(y.mean, time.Microsecond))), mostInStock)
}

// hasEnough reports whether the stock needs no further tasks yet.
func (y supply) hasEnough() bool { return y.stocked > y.goal()/refillAt }

// size returns how many tasks a claim may prefetch.
func (y supply) size() int {
	if y.halted || y.long || y.hasEnough() {
		return 0
	}
	return max(0, y.goal()-y.stocked)
}
