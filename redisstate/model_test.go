package redisstate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A ledger records all moves that succeeded according to the answers that the clients received. The ledger is the model
// of the test: the tasks in Redis must agree with it.
type ledger struct {
	mu      sync.Mutex
	tasks   map[int64]*entry
	keys    map[string]int64 // the task that last took each unique key
	removed int              // number of tasks that were removed
	staged  map[int]bool     // the records of the stage p/s from which it was changed, by Done
	marks   map[string]task.GroupMark
	updates map[roundOf]int // the number of the last update of each round
}

// An entry is one task in the ledger.
type entry struct {
	d     task.Properties
	left  map[place]place    // maps each former state and round to the next state and round
	made  map[rules.Verb]int // number of moves per verb
	last  rules.Verb         // the verb of the last move
	had   map[int]int        // for each round, how often it was claimed and not given back
	claim map[int]string     // the last claim of each round
	twice string             // the problem if something happened twice; otherwise ""
}

type place struct {
	state task.State
	round int
}

func newLedger() *ledger {
	return &ledger{tasks: map[int64]*entry{}, keys: map[string]int64{}, staged: map[int]bool{}, marks: map[string]task.GroupMark{}, updates: map[roundOf]int{}}
}

func (l *ledger) opened(ids []int64, definitions []task.Properties) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, id := range ids {
		e := l.entry(id)
		if e.d.Program != "" {
			e.twice = "its id was given out twice"
		}
		e.d = definitions[i]
		if key := definitions[i].Unique; key != "" {
			l.keys[key] = id
		}
	}
}

// holder returns the task that holds a unique key, or 0. The caller holds the mutex.
func (l *ledger) holder(key string) int64 {
	id := l.keys[key]
	if e := l.tasks[id]; e != nil {
		if at, _ := e.followMoves(); slices.Contains(e.d.UniqueUntil.HoldingStates(), at.state) {
			return id
		}
	}
	return 0
}

// answered records the answer to one definition. If the player is alone, it checks whether the ledger predicts the answer.
func (p *player) answered(d task.Properties, id int64, existing bool) {
	p.ledger.mu.Lock()
	holder := p.ledger.holder(d.Unique)
	p.ledger.mu.Unlock()
	if p.alone {
		expect.Equal(p.t, existing, d.Unique != "" && holder != 0, holder, id)
		if existing {
			expect.Equal(p.t, id, holder)
		}
	}
	if !existing {
		p.ledger.opened([]int64{id}, []task.Properties{d})
		p.ids = append(p.ids, id)
	}
}

// entry returns a task's entry, and creates it if necessary. Another client may have moved the task before the answer
// to Open reached the client that opened it.
func (l *ledger) entry(id int64) *entry {
	e := l.tasks[id]
	if e == nil {
		e = &entry{left: map[place]place{}, made: map[rules.Verb]int{}, had: map[int]int{}, claim: map[int]string{}}
		l.tasks[id] = e
	}
	return e
}

func (l *ledger) moved(m rules.Move) {
	if m.Verb == rules.VerbReschedule || m.Verb == rules.VerbRemoveOutputs || m.Verb == rules.VerbRequire { // the task stays where it is
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(m.ID)
	from := place{m.From, m.Round}
	_, twice := e.left[from]
	switch m.Verb { // another client may have moved a task before the answer to its unclaim came
	case rules.VerbClaim:
		e.had[m.Round]++
		e.claim[m.Round] = m.Claim
	case rules.VerbUnclaim:
		e.had[m.Round]--
	default:
		if twice {
			e.twice = fmt.Sprintf("two moves from %v succeeded", from)
		}
		e.left[from] = place{m.To, m.Next}
	}
	e.made[m.Verb]++
	e.last = m.Verb
	if m.Verb == rules.VerbReopen && e.d.Unique != "" {
		l.keys[e.d.Unique] = m.ID
	}
	if m.Verb == rules.VerbRemove {
		l.removed++
	}
}

// followMoves follows all moves of a task. It returns the task's last state and round, and the number of moves without
// claims.
func (e *entry) followMoves() (place, int) {
	p, steps := place{task.Open, 0}, 0
	for {
		next, ok := e.left[p]
		switch {
		case p.state == task.Open && e.had[p.round] > 0:
			p.state = task.Running
		case ok:
			p, steps = next, steps+1
		default:
			return p, steps
		}
	}
}

// taskCount returns the number of tasks that were opened but not removed.
func (l *ledger) taskCount() int { return len(l.tasks) - l.removed }

// compareTask compares a task in Redis with the ledger. It returns the difference, or "" if they agree.
func (l *ledger) compareTask(id int64, t *task.Task) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.tasks[id]
	if e.twice != "" {
		return e.twice
	}
	for round, n := range e.had {
		if n < 0 || n > 1 {
			return fmt.Sprintf("round %d was claimed %d times", round, n)
		}
	}
	p, steps := e.followMoves()
	if t == nil && p.state == task.None && steps == len(e.left) {
		return ""
	}
	if t == nil || t.State != p.state || t.Round != p.round || steps != len(e.left) {
		return fmt.Sprintf("it is %+v; %d of the moves %v lead to %v", t, steps, e.left, p)
	}
	if wrong := outputsRemoved(t); wrong != "" {
		return wrong
	}
	counted := [5]int{t.Fails, t.Timeouts, t.Losses, t.Releases, t.Reopens}
	made := [5]int{e.made[rules.VerbFail], e.made[rules.VerbTimeOut], e.made[rules.VerbLose], e.made[rules.VerbRelease], e.made[rules.VerbReopen]}
	if counted != made {
		return fmt.Sprintf("its counters are %v; the numbers of the moves that they count are %v", counted, made)
	}
	return ""
}

// outputsRemoved returns the problem if rounds before OutputsFrom still have outputs, or if a later round that was executed has
// none.
func outputsRemoved(t *task.Task) string {
	for n, r := range t.Rounds.All() {
		executed := r.Entered[task.Executed] > 0
		if removed := n < t.OutputsFrom; removed && r.Output+r.Error != "" || !removed && executed && r.Output == "" {
			return fmt.Sprintf("its outputs before round %d are removed, but the output of round %d is %q", t.OutputsFrom, n, r.Output)
		}
	}
	if t.OutputsFrom > 0 && t.KeepOutputs == task.Forever {
		return "its outputs were removed, but they have no limit"
	}
	return ""
}

// A player makes random calls and records their results in a ledger.
type player struct {
	t      *testing.T
	s      *redisstate.Store
	ledger *ledger
	rand   *rand.Rand
	claims []redisstate.Claim // all claims, even those that have ended
	ids    []int64
	alone  bool // there is no other player, so this player can predict every answer
	guest  bool // the player runs in a goroutine of its own
	most   int  // the limit max_tasks that the player has set; 0 means no limit
	paused task.Paused
}

func (p *player) step(ctx context.Context) {
	plays := []func(context.Context){
		p.open, p.openPlain, p.claim, p.claim, p.unclaim, p.execute, p.execute, p.execute, p.settle, p.settle,
		p.renew, p.byHand, p.byHand, p.archive, p.transact,
		p.stage, p.group, p.group, p.pause, p.limitKey, p.returnWaiting, p.returnWaiting,
	}
	if p.alone {
		plays = append(plays, p.limit)
	}
	plays[p.rand.IntN(len(plays))](ctx)
}

// limit sets or removes the limit max_tasks. The new limit is near the present number of tasks.
func (p *player) limit(context.Context) {
	value := "inf"
	if p.most = 0; p.chance(50) {
		p.most = max(1, p.ledger.taskCount()+p.rand.IntN(4)-1)
		value = strconv.Itoa(p.most)
	}
	limitTasks(p.t, p.s, value)
}

// hasRoom reports whether max_tasks allows n more tasks.
func (p *player) hasRoom(n int) bool { return p.most == 0 || p.ledger.taskCount()+n <= p.most }

// checkRefused checks the error of a call that opens tasks, and reports whether max_tasks refused the call.
func (p *player) checkRefused(err error, fits bool) (refused bool) {
	p.t.Helper()
	if refused = errors.As(err, new(*task.TasksLimitError)); !refused {
		p.must(err)
	}
	if p.alone {
		expect.NotEqual(p.t, refused, fits, p.most)
	}
	return refused
}

func (p *player) chance(percent int) bool { return p.rand.IntN(100) < percent }

func (p *player) definition() task.Properties {
	d := define("x")
	d.MaxFails, d.MaxTimeouts, d.MaxLosses = p.rand.IntN(3), p.rand.IntN(3), p.rand.IntN(3)
	if p.chance(30) {
		d.Timeout = 1e-6
	}
	if p.chance(5) {
		d.EndBefore = 1
	}
	if d.EndBefore == task.Never && p.chance(5) {
		d.StartAfter = 9e9
	}
	if p.chance(10) {
		d.Backoff = 3600
	}
	if p.chance(10) {
		d.KeepFinished, d.KeepArchived = 1e-6, 0
	}
	if p.chance(20) {
		d.KeepOutputs = 1e-6
	}
	if p.chance(20) {
		d.Unique = "k" + strconv.Itoa(p.rand.IntN(5))
		if p.chance(50) {
			d.UniqueUntil = task.UntilArchived
		}
	}
	if p.chance(50) {
		d.Group = "g" + strconv.Itoa(p.rand.IntN(3))
	}
	if p.chance(40) {
		d.Queue, d.Priority = []string{"", "a"}[p.rand.IntN(2)], p.rand.IntN(3)
		d.Tags = [][]string{nil, {"gpu"}, {"gpu", "ssd"}}[p.rand.IntN(3)]
	}
	if p.chance(10) {
		d.Source = ""
	}
	if p.chance(30) {
		d.LimitKey = limitedKeys[p.rand.IntN(len(limitedKeys))]
	}
	return d
}

// limitedKeys are the limit keys of tasks in the test. The limits of these keys change. At no time do more tasks of the last key
// run than its limit allows.
var limitedKeys = []string{"l1", "l2", "fixed"}

const fixedLimit = 3

// countFixed counts, in one step, the running tasks with the limit key "fixed".
const countFixed = `
local n = 0
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  if redis.call('HGET', ARGV[1] .. id, 'limit_key') == 'fixed' then n = n + 1 end
end
return n`

// limitKey sets or removes the limit of a key.
func (p *player) limitKey(ctx context.Context) {
	p.must(p.s.Limits.SetLimit(ctx, "fixed", task.Limit{AtMost: fixedLimit}))
	key := limitedKeys[p.rand.IntN(2)]
	switch p.rand.IntN(3) {
	case 0:
		p.must(p.s.Limits.RemoveLimit(ctx, key))
	case 1:
		p.must(p.s.Limits.SetLimit(ctx, key, task.Limit{Starts: 1 + p.rand.IntN(3), Per: task.Seconds(0.01).Std()}))
	default:
		p.must(p.s.Limits.SetLimit(ctx, key, task.Limit{AtMost: p.rand.IntN(4)}))
	}
}

// returnWaiting returns tasks that wait because of limits.
func (p *player) returnWaiting(context.Context) {
	if !p.t.Failed() {
		returnWaiting(p.t, p.s)
	}
}

// offer returns the offer of a worker. Most workers may claim every task.
func (p *player) offer() class.Offer {
	o := class.Offer{
		Queues: []class.QueueShare{{Queue: "a"}, {Queue: class.DefaultQueue}}, Tags: []string{"gpu", "ssd"}, Handlers: []string{"p"}, Programs: true,
	}
	if p.chance(30) {
		o.Queues, o.Tags = o.Queues[p.rand.IntN(2):], o.Tags[:p.rand.IntN(3)]
		o.Programs = p.chance(80)
	}
	return o
}

func (p *player) open(ctx context.Context) {
	definitions := make([]task.Properties, 1+p.rand.IntN(4))
	for i := range definitions {
		definitions[i] = p.definition()
	}
	opened, err := redisstate.OpenUnique(p.s, ctx, "player", "", definitions)
	for i, o := range opened {
		if o.ID > 0 {
			p.answered(definitions[i], o.ID, o.Existing)
		} else {
			p.checkRefused(err, p.hasRoom(1))
		}
	}
	if len(opened) < len(definitions) {
		p.must(err)
	}
}

// openPlain opens tasks without unique keys.
func (p *player) openPlain(ctx context.Context) {
	definitions := []task.Properties{p.definition(), p.definition()}
	for i := range definitions {
		definitions[i].Unique = ""
	}
	ids, err := p.s.Open(ctx, "player", definitions...)
	if p.checkRefused(err, p.hasRoom(len(definitions))) {
		return
	}
	p.ledger.opened(ids, definitions)
	p.ids = append(p.ids, ids...)
}

func (p *player) claim(ctx context.Context) {
	request := redisstate.ClaimParams{
		Worker: "w" + strconv.Itoa(p.rand.IntN(5)), Most: 1 + p.rand.IntN(3), Lease: p.lease(),
		Prefetch: p.rand.IntN(4),
	}
	offer := p.offer()
	request.Offer = &offer
	c, err := redisstate.ClaimAndExpire(p.s, ctx, request, func(expired []rules.Move) {
		for _, m := range expired {
			p.ledger.moved(m)
		}
	})
	p.must(err)
	running := useOf(p.t, p.s, "fixed").Running
	if !conntest.OnEmbedded(p.t) { // the embedded Redis runs no scripts but those of TDF
		list := []string{p.s.Keys.List(task.Running)}
		running, err = p.s.Conn.Redis.Eval(ctx, countFixed, list, p.s.Keys.TaskPrefix()).Int()
		p.must(err)
	}
	expect.Compare(p.t, running, "<=", fixedLimit)
	for _, claim := range c.Claims {
		before := p.lastMoveOfWaiting(claim.Task.ID)
		p.ledger.moved(rules.Move{
			ID: claim.Task.ID, Verb: rules.VerbClaim, From: task.Open, Round: claim.Task.Round, To: task.Running,
			Next: claim.Task.Round, Claim: claim.ID,
		})
		p.claims = append(p.claims, claim)
		p.ids = append(p.ids, claim.Task.ID)
		d := claim.Task.Properties
		if claim.Task.Current().Prefetched {
			plain := d.Timeout == task.Forever && d.LimitKey == "" && claim.Task.Round == 0
			expect.True(p.t, plain, "task", claim.Task.ID, "was prefetched")
		}
		expect.Compare(p.t, d.EndBefore, ">", c.Now, "task", claim.Task.ID, "was claimed too early or too late")
		expect.Compare(p.t, d.StartAfter, "<=", c.Now, "task", claim.Task.ID, "was claimed too early or too late")
		if p.alone {
			expect.True(p.t, class.Serves(&offer, read(p.t, p.s, claim.Task.ID).Requirement()), claim.Task.ID, offer)
		}
		if p.alone {
			if by, held := p.paused.Holds(&read(p.t, p.s, claim.Task.ID).Properties); held {
				p.t.Errorf("task %d was claimed although %v is paused", claim.Task.ID, by)
			}
		}
		expect.NotEqual(p.t, before, rules.VerbFail, "task", claim.Task.ID, "was claimed during its back-off")
		expect.NotEqual(p.t, before, rules.VerbTimeOut, "task", claim.Task.ID, "was claimed during its back-off")
	}
	p.claims = p.claims[max(0, len(p.claims)-60):]
	p.ids = p.ids[max(0, len(p.ids)-200):]
}

// lastMoveOfWaiting returns the verb of the last move of a task with a back-off. It returns "" for other tasks, and if the
// player is not alone.
func (p *player) lastMoveOfWaiting(id int64) rules.Verb {
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	if e := p.ledger.entry(id); p.alone && e.d.Backoff > 0 {
		return e.last
	}
	return ""
}

func (p *player) lease() task.Seconds {
	if p.chance(20) {
		return 1e-6
	}
	return 3600
}

func (p *player) anyClaim() (redisstate.Claim, bool) {
	if len(p.claims) == 0 {
		return redisstate.Claim{}, false
	}
	return p.claims[p.rand.IntN(len(p.claims))], true
}

func (p *player) execute(ctx context.Context) {
	c, ok := p.anyClaim()
	if !ok {
		return
	}
	r := rules.Result{Output: "o", Exit: "0"}
	if p.chance(40) {
		r.Error = "e"
	}
	m, err := rules.Execute(c.Task, c.ID, r)
	p.must(err)
	outcomes, err := p.s.Execute(ctx, "player", m)
	p.must(err)
	made := p.expect(m, outcomes[0].Err, true)
	if outcomes[0].Err == nil && made {
		p.ledger.moved(m)
	}
}

// unclaim gives back a task that was prefetched.
func (p *player) unclaim(ctx context.Context) {
	c, ok := p.anyClaim()
	if !ok || !c.Task.Current().Prefetched {
		return
	}
	m, err := rules.Unclaim(c.Task, "so")
	p.must(err)
	p.apply(ctx, m)
}

// expect checks the answer to a move, if the player can predict the answer. The parameter again says whether the move
// may be a repetition. If the same move has succeeded before, expect returns false, because the ledger already contains
// it.
func (p *player) expect(m rules.Move, err error, again bool) bool {
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	e := p.ledger.entry(m.ID)
	at, _ := e.followMoves()
	to, left := e.left[place{m.From, m.Round}]
	repeated := again && left && to.state == m.To
	want := at == (place{m.From, m.Round}) || repeated && at.state != task.None
	if holder := p.ledger.holder(e.d.Unique); m.Verb == rules.VerbReopen && e.d.Unique != "" && holder != 0 && holder != m.ID {
		want = false
	}
	if m.Claim != "" && m.Claim != rules.NoClaim && m.Claim != e.claim[m.Round] {
		want = false
	}
	if p.alone {
		expect.Equal(p.t, err == nil, want, m.ID)
	}
	return !repeated
}

func (p *player) renew(ctx context.Context) {
	c, ok := p.anyClaim()
	if !ok {
		return
	}
	of := roundOf{c.Task.ID, c.Task.Round}
	report, n := p.ledger.nextUpdate(of)
	renewed, err := p.s.Renew(ctx, p.lease(), redisstate.LeaseRenewal{ID: c.Task.ID, Round: c.Task.Round, Claim: c.ID, Report: report})
	if p.must(err); renewed.Lost[0] == nil {
		p.ledger.updated(of, n)
	}
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	at, _ := p.ledger.entry(c.Task.ID).followMoves()
	if p.alone {
		has := at == (place{task.Running, c.Task.Round}) && p.ledger.entry(c.Task.ID).claim[c.Task.Round] == c.ID
		expect.Equal(p.t, renewed.Lost[0] == nil, has, c.Task.ID)
	}
}

// settle settles tasks as a server does.
func (p *player) settle(ctx context.Context) {
	moves, err := settlements(ctx, p.s, 50)
	p.must(err)
	p.apply(ctx, moves...)
}

// byHand makes a random move that a user, a manager or a worker can make. The move may fail because of the task's
// state.
func (p *player) byHand(ctx context.Context) {
	if len(p.ids) == 0 {
		return
	}
	stored, err := p.s.ReadOne(ctx, p.ids[p.rand.IntN(len(p.ids))], redisstate.Want{Fields: redisstate.Whole})
	if errors.Is(err, task.ErrNoTask) {
		return // the task was removed
	}
	p.must(err)
	t := stored.Task
	requests := []func(*task.Task) (rules.Move, error){
		rules.Archive, rules.Cancel, rules.Reopen, rules.TimeOut,
		func(t *task.Task) (rules.Move, error) { return rules.Release(t, "so") },
		func(t *task.Task) (rules.Move, error) { return rules.Requeue(t, p.chance(50)) },
		func(t *task.Task) (rules.Move, error) {
			return rules.ReopenWith(t, task.Changes{Input: new("again")})
		},
	}
	if p.chance(10) {
		requests = append(requests, rules.Remove)
	}
	m, err := requests[p.rand.IntN(len(requests))](t)
	if err != nil {
		return
	}
	if p.chance(10) {
		m.Round += 1000 // no task reaches this round
	}
	p.apply(ctx, m)
}

func (p *player) archive(ctx context.Context) {
	for _, state := range []task.State{task.Succeeded, task.Failed, task.TimedOut, task.Expired} {
		ids, err := p.s.List(ctx, state, "", 0, 5)
		p.must(err)
		stored, err := p.s.Read(ctx, ids, redisstate.Want{Fields: redisstate.Whole})
		p.must(err)
		for i := range stored {
			t := stored[i].Task
			if t == nil { // the task was archived and removed meanwhile
				continue
			}
			m, err := rules.Archive(t)
			if err != nil { // another player has moved the task
				continue
			}
			u := redisstate.Unit{Moves: []rules.Move{m}}
			if p.chance(30) {
				u.Open = []task.Properties{p.definition()}
			}
			outcomes, err := p.s.Apply(ctx, "player", u)
			p.must(err)
			p.expect(m, outcomes[0].Err, false)
			if outcomes[0].Err == nil {
				p.ledger.moved(m)
				for i, id := range outcomes[0].IDs {
					p.answered(u.Open[i], id, outcomes[0].Existing != nil && outcomes[0].Existing[i])
				}
			}
		}
	}
}

// transact moves or requires several tasks, and opens tasks, in one unit. If any move fails, nothing happens.
func (p *player) transact(ctx context.Context) {
	if len(p.ids) == 0 {
		return
	}
	var ids []int64
	for range 1 + p.rand.IntN(4) {
		ids = append(ids, p.ids[p.rand.IntN(len(p.ids))])
	}
	stored, err := p.s.Read(ctx, conn.Unique(ids), redisstate.Want{Fields: redisstate.Whole})
	p.must(err)
	u, possible, keyed := redisstate.Unit{}, true, false
	for _, x := range stored {
		if x.Task == nil {
			return
		}
		decisions := []func(*task.Task) (rules.Move, error){rules.Archive, rules.Cancel, rules.Reopen}
		m, err := decisions[p.rand.IntN(len(decisions))](x.Task)
		if err != nil {
			m = rules.Require(x.Task)
		}
		if m = m.IfUnchanged(x.Task); p.chance(10) {
			m.Revision, possible = "77", false // no task has this revision
		}
		keyed = keyed || m.Verb == rules.VerbReopen && x.Task.Unique != ""
		u.Moves = append(u.Moves, m)
	}
	if p.chance(50) {
		u.Open = []task.Properties{p.definition(), p.definition()}
	}
	outcomes, err := p.s.Apply(ctx, "player", u)
	p.must(err)
	o := outcomes[0]
	if p.alone && !keyed {
		expect.Equal(p.t, o.Err == nil, possible)
	}
	if o.Err != nil {
		return
	}
	for _, m := range u.Moves {
		p.ledger.moved(m)
	}
	for i, id := range o.IDs {
		p.answered(u.Open[i], id, o.Existing != nil && o.Existing[i])
	}
}

func (p *player) apply(ctx context.Context, moves ...rules.Move) {
	outcomes, err := p.s.Apply(ctx, "player", redisstate.UnitsOf(moves)...)
	p.must(err)
	for i, m := range moves {
		if m.Verb != rules.VerbReschedule {
			p.expect(m, outcomes[i].Err, false)
		}
		if outcomes[i].Err == nil {
			p.ledger.moved(m)
		}
	}
}

func (p *player) must(err error) {
	p.t.Helper()
	if err != nil {
		p.fatal(err)
	}
}

// fatal fails the test and ends it. If the player runs in a goroutine of its own, fatal ends only this player.
func (p *player) fatal(err error) {
	p.t.Helper()
	expect.MustTrue(p.t, p.guest, err)
	p.t.Error(err)
	runtime.Goexit()
}

// checkAll compares all tasks whose ids are at least from with the ledger. It also compares the record of the stage.
func (p *player) checkAll(from int64) {
	p.t.Helper()
	p.checkStage()
	for page := range slices.Chunk(p.ledger.ids(from), 500) {
		tasks, err := p.s.Read(context.Background(), page, redisstate.Want{Fields: redisstate.Whole})
		p.must(err)
		for i, t := range tasks {
			expect.MustEqual(p.t, p.ledger.compareTask(page[i], t.Task), "", "task", page[i])
		}
	}
}

// ids returns the ids of all tasks whose ids are at least from, in ascending order.
func (l *ledger) ids(from int64) (ids []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.tasks {
		if id >= from {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// operations returns the number of random operations of a test. If TDF_SOAK is set, it returns the number long.
// Otherwise, it returns the number short, or a quarter of it on the slow embedded Redis. 1,000 operations of one player run 99 %
// of the lines of the scripts that 6,000 operations run.
func operations(t testing.TB, short, long int) int {
	switch {
	case os.Getenv("TDF_SOAK") != "":
		return long
	case conntest.OnEmbedded(t):
		return short / 4
	}
	return short
}

func seeded(t *testing.T) uint64 {
	seed := rand.Uint64()
	if given := os.Getenv("TDF_SEED"); given != "" {
		var err error
		seed, err = strconv.ParseUint(given, 10, 64)
		expect.MustTrue(t, err == nil, "TDF_SEED:", err)
	}
	t.Logf("TDF_SEED=%d makes the same operations", seed)
	return seed
}

func TestSoakOneClientAgreesWithTheModel(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		seed := seeded(t)
		p := &player{t: t, s: s, ledger: newLedger(), rand: rand.New(rand.NewPCG(seed, 0)), alone: true}
		p.limitKey(t.Context())
		steps := operations(t, 1_000, 125_000)
		for i := range steps {
			p.step(t.Context())
			p.checkTouched()
			if i%(steps/5) == 0 {
				p.checkAll(0)
				mustBeSound(t, s)
			}
			expect.MustTrue(t, !t.Failed(), "after", i+1, "operations")
		}
		p.checkAll(0)
		p.checkUpdates()
		mustBeSound(t, s)
	})
}

// checkTouched compares the tasks that the player opened or claimed last with the ledger. It also compares the total
// number of tasks.
func (p *player) checkTouched() {
	p.t.Helper()
	ids := conn.Unique(slices.Clone(p.ids[max(0, len(p.ids)-8):]))
	tasks, err := p.s.Read(context.Background(), ids, redisstate.Want{Fields: redisstate.Whole})
	p.must(err)
	for i, t := range tasks {
		expect.Equal(p.t, p.ledger.compareTask(ids[i], t.Task), "", "task", ids[i])
	}
	counts, err := p.s.Counts(context.Background())
	p.must(err)
	want := p.ledger.taskCount()
	expect.True(p.t, counts.Total() == int64(want), "the lists contain", counts, "but the ledger has", want, "tasks")
}

func TestSoakManyClientsAgreeWithTheModel(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		seed := seeded(t)
		l := newLedger()
		const clients = 16
		var all sync.WaitGroup
		for i := range clients {
			p := &player{t: t, s: s, ledger: l, rand: rand.New(rand.NewPCG(seed, uint64(i))), guest: true}
			p.limitKey(t.Context())
			all.Go(func() {
				for range operations(t, 2_000, 125_000) / clients {
					if t.Failed() {
						return
					}
					p.step(t.Context())
				}
			})
		}
		all.Wait()
		p := &player{t: t, s: s, ledger: l}
		p.checkAll(0)
		p.checkUpdates()
		mustBeSound(t, s)
	})
}
