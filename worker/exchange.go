package worker

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/worker/resources"
	"github.com/tdf-framework/tdf/redisstate"
)

// An exchange is the loop in which a worker reports rounds and gets tasks. At most one call is under way, and a second
// one for reports that may take long. A call sends the results that have gathered, and asks for as many tasks as there
// are free slots, and for a stock.
type exchange struct {
	*supervisor
	answers chan call
	wakes   chan call

	results      []*execution // for the next call
	succeeded    bool         // a round has succeeded since the last claim
	waited, ripe bool         // results have waited for once, and twice, reportedAfter
	calling      bool
	slow         backlog

	// The worker claims again when a round has succeeded, and otherwise not while it is idle or rests.
	idle     bool // the last claim has found too few tasks
	awaiting bool // the broker waits for tasks
	again    bool // during the call under way, there was a reason to claim again
	endAwait func()
	resting  <-chan time.Time
	kept     bool // the worker rests until more is free, because it is kept for a task
	passing  bool // the last claims have met tasks that the worker must not get

	endOfClaims func() // closes noClaims
}

// A call is one call of the broker, with its answer.
type call struct {
	reports []*execution
	slow    bool

	claim *redisstate.ClaimParams // nil if the call claims nothing
	lent  *resources.Loan
	began time.Time

	tasks    redisstate.ClaimResult
	woken    bool
	err      error
	received time.Time
	leased   time.Time // from when the leases of the tasks count
}

func newExchange(s *supervisor) *exchange {
	return &exchange{
		supervisor: s, answers: make(chan call, 2), wakes: make(chan call, 1),
		endAwait: func() {}, endOfClaims: sync.OnceFunc(func() { close(s.noClaims) }),
	}
}

// run runs until the context reporting has ended and the worker holds no task. Then all is reported or dropped.
func (x *exchange) run() {
	claiming, reporting, tick := x.claiming.Done(), x.reporting.Done(), (<-chan time.Time)(nil)
	for !x.isOver() {
		x.fill()
		x.sendSlow()
		x.send()
		if tick == nil && len(x.tasks)+len(x.results) > 0 {
			tick = x.after(reportedAfter)
		}
		select {
		case e := <-x.ended:
			x.gather(e)
		case a := <-x.answers:
			x.answered(a)
		case a := <-x.wakes:
			x.woke(a)
		case <-x.freed:
			x.haveFreed()
		case <-x.resting:
			x.resting = nil
		case <-x.slow.again:
			x.slow.again = nil
		case <-tick:
			tick = nil
			x.tick()
		case <-x.drain.changed:
			x.endAwait()
		case <-claiming:
			claiming = nil
		case <-reporting:
			reporting = nil
		}
	}
}

// isOver closes noClaims when no claim is under way any more, and reports whether the exchange has ended.
func (x *exchange) isOver() bool {
	if x.claiming.Err() == nil || x.calling || x.awaiting {
		return false
	}
	x.endOfClaims()
	return x.reporting.Err() != nil && !x.slow.sending && len(x.executions()) == 0
}

// gather takes a round that has ended, and lets other rounds that are about to end do so, so that one call reports them
// all.
func (x *exchange) gather(e *execution) {
	for {
		x.add(e)
		runtime.Gosched()
		select {
		case e = <-x.ended:
		default:
			return
		}
	}
}

// largeResult is the size in bytes from which a result does not travel with others. On a slow link, it takes long.
const largeResult = 256 << 10

func (x *exchange) add(e *execution) {
	switch r := &e.result; {
	case !e.conclude():
		x.drop(e, e.cause)
		return
	case len(r.Output)+len(r.Error)+len(r.JSON)+len(r.Packed) > largeResult, x.broker.Confirms(x.reporting):
		x.slow.reports = append(x.slow.reports, e)
	default:
		x.results = append(x.results, e)
	}
	x.succeeded = x.succeeded || e.report.Succeeds() && e.dir == nil
}

// tick ends the waiting of results, and gives the stock back if a round takes long.
func (x *exchange) tick() {
	x.ripe, x.waited = x.waited, len(x.results) > 0
	if x.supply().long {
		x.giveBack()
	}
}

// isDue reports whether the results must be sent. They wait for further ones while the slots still have work.
func (x *exchange) isDue() bool {
	switch {
	case len(x.results) == 0:
		return false
	case x.ripe, x.claiming.Err() != nil, x.reporting.Err() != nil:
		return true
	}
	return slices.ContainsFunc(x.results, (*execution).hasSlot) || !x.supply().hasEnough()
}

// send makes the next call, if there is anything to report or to claim.
func (x *exchange) send() {
	if x.calling {
		return
	}
	claim := x.toClaim()
	if claim == nil && !x.isDue() {
		return
	}
	a := call{reports: x.results, claim: claim}
	x.results, x.waited, x.ripe = nil, false, false
	if claim != nil {
		x.succeeded = false
		a.lent = x.lend(claim)
	}
	x.calling = true
	x.carryOutApart(a)
}

// toClaim returns what the next call asks for, or nil. Over the HTTP API, the call that waits for tasks claims them, so
// another claim meanwhile would get more than there are free slots.
func (x *exchange) toClaim() *redisstate.ClaimParams {
	if x.once.Load() || x.claiming.Err() != nil || x.drain.on() || x.awaiting && x.cfg.API.URL != "" {
		return nil
	}
	joint := x.succeeded && !x.passing && x.cfg.SleepAfterSuccess == 0
	if !joint && (x.idle || x.resting != nil) {
		return nil
	}
	free := x.freeSlots() - len(x.tasks)
	for _, e := range x.results {
		if joint && e.freesSlot() {
			free++
		}
	}
	r := &redisstate.ClaimParams{Most: max(0, free), TimeLeft: x.timeLeft()}
	if r.Most > 0 || joint {
		r.Prefetch = x.supply().size()
	}
	if r.Most+r.Prefetch == 0 {
		return nil
	}
	return r
}

// carryOutApart makes a call in a goroutine of its own. The supervisor stays open until it has ended.
func (x *exchange) carryOutApart(a call) {
	x.work.Add(1)
	x.loops.Go(func() { x.answers <- x.carryOut(a) })
}

// carryOut makes a call, and returns it with its answer.
func (s *supervisor) carryOut(a call) call {
	a.began = time.Now()
	a.tasks, a.err = s.broker.Exchange(s.reporting, s.awaitingAnswer, a.claim, reportsOf(a.reports)...)
	a.received = time.Now()
	a.leased = s.renewLate(s.awaitingAnswer, a.tasks)
	return a
}

func reportsOf(all []*execution) []*broker.Delivery {
	reports := make([]*broker.Delivery, len(all))
	for i, e := range all {
		reports[i] = &e.report
	}
	return reports
}

func (x *exchange) answered(a call) {
	defer x.work.Done()
	if a.slow {
		x.slow.sending = false
	} else {
		x.calling = false
	}
	x.putOff(a)
	if a.claim == nil {
		return
	}
	x.start(a)
	x.learn(a)
}

// claimPause is the time between two claims of a worker that skip tasks which it must not get: a claim skips a bounded
// number of them. In this time, Redis serves other clients.
const claimPause = 5 * time.Millisecond

// learn decides from the answer to a claim when the worker claims again.
func (x *exchange) learn(a call) {
	c, n, again := &a.tasks, len(a.tasks.Claims), x.again
	x.again = false
	if x.claiming.Err() != nil || a.claim.Most == 0 && a.err == nil {
		return
	}
	x.passing = c.Unwanted > 0 || x.passing && n > 0
	x.idle, x.resting, x.kept = false, nil, false
	full := a.err == nil && n >= a.claim.Most
	if full {
		x.endAwait() // tokens are for workers with free slots
	}
	if full || a.err == nil && c.More && n > 0 {
		return
	}
	switch {
	case a.err != nil:
		x.log.Error("claiming failed, trying again", "error", a.err)
		x.rest(min(max(x.cfg.SleepAfterNoProcessClaimed, errorPause), longestPause))
	case c.MustWait:
		x.rest(redisstate.RoomPause)
	case c.More:
		x.rest(claimPause)
	case c.Unwanted > 0:
		x.rest(min(x.idleTime(c), unwantedPause))
	case c.Kept: // meanwhile, tokens are for other workers
		x.kept = true
		x.endAwait()
		x.rest(x.idleTime(c))
	case !again:
		x.await(a)
	}
}

func (x *exchange) rest(d time.Duration) {
	if d > 0 {
		x.resting = x.after(d)
	}
}

// await waits until there may be a task for the worker, at most until an idle worker claims again. Over the HTTP API,
// the call claims for the slots that are free now.
func (x *exchange) await(a call) {
	claim := redisstate.ClaimParams{Most: x.freeSlots(), TimeLeft: x.timeLeft()}
	if claim.Most <= 0 { // Redis has refused the results that came with the claim
		return
	}
	x.idle = true
	if x.awaiting {
		return
	}
	x.awaiting, a.lent = true, nil
	if x.cfg.API.URL != "" {
		a.lent = x.lend(&claim)
	}
	longest := x.idleTime(&a.tasks)
	ctx, end := context.WithCancel(x.claiming)
	x.endAwait = end
	x.loops.Go(func() {
		defer end()
		a.claim = &claim
		a.woken, a.tasks, a.err = x.broker.Await(ctx, x.awaitingAnswer, claim, longest)
		a.received = time.Now()
		a.leased = x.renewLate(x.awaitingAnswer, a.tasks)
		x.wakes <- a
	})
}

// woke handles the end of a wait. The broker may have claimed tasks meanwhile.
func (x *exchange) woke(a call) {
	x.awaiting, x.idle, x.again = false, false, x.calling
	x.start(a)
	if a.err != nil || len(a.tasks.Claims) > 0 {
		x.learn(a)
		return
	}
	if a.woken && x.resting == nil {
		x.rest(x.claimGap - time.Since(a.began))
	}
}

// haveFreed is called when a slot has become free. If the worker offers resources, a task may fit now that did not fit
// before.
func (x *exchange) haveFreed() {
	if x.pool == nil {
		return
	}
	x.idle, x.again = false, x.calling
	x.endAwait()
	if x.kept {
		x.kept, x.resting = false, nil
	}
}

// longestPause bounds the pause between two attempts to report, and between a claim that failed and the next one.
const longestPause = 5 * time.Second

// logPause is the shortest time between two log messages about a backlog.
const logPause = time.Minute

// A backlog has the reports that may take long: those with large results, those that wait for replicas, and those that
// Redis has refused. The worker sends refused ones again after a pause, which grows from try to try. The others do not
// wait for it.
type backlog struct {
	reports, refused []*execution
	sending          bool
	pause            time.Duration
	again            <-chan time.Time // nil if the refused reports need not wait
	logged           time.Time        // when the error was last logged
}

// sendSlow sends the reports that may take long in a call of their own.
func (x *exchange) sendSlow() {
	b := &x.slow
	if b.again == nil || x.reporting.Err() != nil {
		b.reports, b.refused = append(b.reports, b.refused...), nil
	}
	if b.sending || len(b.reports) == 0 {
		return
	}
	a := call{reports: b.reports, slow: true}
	b.reports, b.sending = nil, true
	x.carryOutApart(a)
}

// putOff adds the reports that Redis has refused to the backlog. When the worker gives up reporting, putOff drops them.
// After a call that also claimed, they have not been sent one by one yet, so they need no pause.
func (x *exchange) putOff(a call) {
	b := &x.slow
	refused := slices.DeleteFunc(a.reports, func(e *execution) bool { return !e.mustReport })
	if x.reporting.Err() != nil {
		for _, e := range refused {
			e.logUndelivered(e.report.Err)
			x.freeDropped(e)
		}
		return
	}
	b.refused = append(b.refused, refused...)
	switch {
	case len(b.refused) == 0 && a.slow:
		b.pause = 0
	case len(refused) == 0, a.claim != nil, b.again != nil:
	default:
		b.pause = min(max(2*b.pause, errorPause), longestPause)
		b.again = x.after(b.pause)
		if time.Since(b.logged) > logPause {
			x.log.Error("rounds could not be reported, trying again", "rounds", len(b.refused), "error",
				cmp.Or(a.err, refused[0].report.Err))
			b.logged = time.Now()
		}
	}
}

// claimNow claims up to n tasks and starts them, for a worker that claims none by itself.
func (s *supervisor) claimNow(n int) (claimed int, err error) {
	a := call{claim: &redisstate.ClaimParams{Most: n, TimeLeft: s.timeLeft()}}
	a.lent = s.lend(a.claim)
	a = s.carryOut(a)
	s.start(a)
	return len(a.tasks.Claims), a.err
}
