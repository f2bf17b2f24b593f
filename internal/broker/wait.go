package broker

import (
	"container/list"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A waitlist is where the calls of all workers with one offer and one token wait for tasks. It takes wake tokens for
// them, so that many idle workers cost Redis as much as one. For each wake token it wakes the call that has waited for
// the longest time.
type waitlist struct {
	broker *Broker
	token  string // its name
	offer  class.Offer
	free   class.Capacities // of all workers whose calls wait; nil if they offer no resources

	mu      sync.Mutex
	turns   class.Turns
	waiting *list.List // of chan struct{}
	next    time.Time  // when the next task becomes due; zero if that is unknown
	quiet   time.Time  // until then, the waitlist wakes nobody
	serving bool       // a goroutine takes tokens
	changed chan struct{}
	endWait context.CancelFunc // ends the goroutine's wait for a token
}

const (
	// longestIdle is the longest time after which a call is woken without a token, because a token may be lost, or a
	// queue may be new.
	longestIdle = 2 * time.Second

	// linger is how long a waitlist without calls still takes tokens, because the next call often comes soon. It gives
	// the tokens back.
	linger = time.Second

	dueSlack      = 2 * time.Millisecond
	unwantedPause = 100 * time.Millisecond // after a claim that met only tasks that its worker must not have

	// mostWakers bounds the connections to Redis, of which each token has a share. The calls in waitlists that get none
	// look for tasks from time to time.
	mostWakers    = 128
	pollPause     = 20 * time.Millisecond // between two of their looks
	mostWaitlists = 1000                  // without a call; the others are forgotten, with the turns of their queues
)

// waitlist returns the waitlist of an offer of a token's workers that have this free.
func (b *Broker) waitlist(token string, o class.Offer, free class.Capacities) *waitlist {
	name := fmt.Sprintf("%q", []any{
		token, o.Queues, o.Tags, o.Handlers, o.Programs, o.Anything, o.Group, o.Resources, free,
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.waitlists[name]; l != nil {
		return l
	}
	if len(b.waitlists) >= mostWaitlists {
		maps.DeleteFunc(b.waitlists, func(_ string, l *waitlist) bool { return l.isEmpty() })
	}
	l := &waitlist{broker: b, token: token, offer: o, free: free, waiting: list.New(), changed: make(chan struct{}, 1)}
	b.waitlists[name] = l
	return l
}

func (l *waitlist) isEmpty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting.Len() == 0 && !l.serving
}

// inTurn returns the offer, with the queues in the order in which the next claim serves them.
func (l *waitlist) inTurn() *class.Offer {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.offer
	o.Queues = l.turns.Order(o.Queues)
	return &o
}

// wait waits until it is this call's turn to claim, and reports whether it is. The caller must then claim, and call
// learn or wakeNext. It is false when ctx ends, or the time is over.
func (l *waitlist) wait(ctx context.Context, over <-chan time.Time) bool {
	turn := make(chan struct{}, 1)
	l.mu.Lock()
	e := l.waiting.PushBack(turn)
	first := l.waiting.Len() == 1
	if !l.serving {
		l.serving, l.endWait = true, func() {}
		go l.serve()
	}
	l.mu.Unlock()
	if first {
		l.tell()
	}
	select {
	case <-turn:
		return true
	case <-over:
	case <-ctx.Done():
	}
	l.mu.Lock()
	l.waiting.Remove(e) // does nothing if it was this call's turn
	last := l.waiting.Len() == 0
	l.mu.Unlock()
	if last {
		l.tell()
	}
	select {
	case <-turn:
		return true
	default:
		return false
	}
}

// tell makes the goroutine of the waitlist look at the waitlist again.
func (l *waitlist) tell() {
	l.mu.Lock()
	if l.serving {
		l.endWait()
	}
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// learn remembers what a claim has said about the tasks that are left, and wakes another call if there may be tasks for
// it.
func (l *waitlist) learn(c *redisstate.ClaimResult) {
	l.mu.Lock()
	l.turns.Record(l.offer.Queues, c.Queues, c.Taken)
	l.next = time.Time{}
	if c.Next < task.Never && c.Now > 0 {
		l.next = time.Now().Add(max(c.Next.Sub(c.Now), 0).Std() + dueSlack)
	}
	switch {
	case c.MustWait:
		l.quiet = time.Now().Add(redisstate.RoomPause)
	case len(c.Claims) == 0 && c.Unwanted > 0: // Redis has a token for another worker, so the next one follows at once
		l.quiet = time.Now().Add(unwantedPause)
	}
	news := !l.next.IsZero() || l.quiet.After(time.Now())
	l.mu.Unlock()
	if news {
		l.tell()
	}
	if c.More {
		l.wakeNext()
	}
}

// wakeNext makes it the turn of the call that has waited for the longest time.
func (l *waitlist) wakeNext() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first := l.waiting.Front(); first != nil {
		l.waiting.Remove(first).(chan struct{}) <- struct{}{}
	}
}

// serve takes tokens as long as calls wait.
func (l *waitlist) serve() {
	waker, giveBack := l.broker.takeWaker(l)
	defer func() { giveBack() }()
	for {
		pause, quiet, empty := l.plan()
		switch {
		case empty && !l.sleep(linger):
			if l.stop() {
				return
			}
		case empty:
		case quiet:
			l.sleep(pause)
		case waker == nil:
			time.Sleep(longestIdle)
			l.broker.poll()
			l.wakeNext()
			waker, giveBack = l.broker.takeWaker(l) // one may be free now
		case l.await(waker, pause):
			l.wakeNext()
		}
	}
}

// await waits for a token, at most for a time. It reports whether a call must be woken, and not only the plan has
// changed.
func (l *waitlist) await(waker *conn.Waker, d time.Duration) bool {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	l.mu.Lock()
	l.endWait = end
	l.mu.Unlock()
	select {
	case <-l.changed: // since the plan was made
		return false
	default:
		return waker.Wait(ctx, d) || ctx.Err() == nil
	}
}

// plan returns what to do next: how long to wait, and whether it must be without taking tokens.
func (l *waitlist) plan() (pause time.Duration, quiet, empty bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if left := l.quiet.Sub(now); left > 0 {
		return left, true, l.waiting.Len() == 0
	}
	pause = longestIdle
	if !l.next.IsZero() {
		pause = min(pause, max(l.next.Sub(now), dueSlack))
	}
	return pause, false, l.waiting.Len() == 0
}

// sleep waits for a time, or until the waitlist changes. It reports whether it has changed.
func (l *waitlist) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-l.changed:
		return true
	}
}

// stop ends serving, unless a call waits.
func (l *waitlist) stop() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serving = l.waiting.Len() > 0
	return !l.serving
}

// takeWaker returns a waker for a waitlist, or nil if its token has its share of wakers. The function gives it back.
func (b *Broker) takeWaker(l *waitlist) (w *conn.Waker, giveBack func()) {
	leave, err := b.wakers.Enter(l.token)
	if err != nil {
		return nil, func() {}
	}
	w = b.store.WakeWorker(&l.offer, func() class.Capacities { return l.free })
	return w, func() {
		_ = w.Close() // it has nothing left to lose
		leave()
	}
}

// poll waits until a waitlist without a waker may look for tasks.
func (b *Broker) poll() {
	b.polling.Lock()
	defer b.polling.Unlock()
	time.Sleep(pollPause)
}
