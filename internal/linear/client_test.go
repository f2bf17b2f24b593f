package linear

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/server"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/redisstate"
)

// limited are the limit keys of tasks.
var limited = []string{"l0", "l1"}

// untilArchived is the first letter of a unique key that tasks hold until they are archived.
const untilArchived = "a"

// A client makes the calls of a manager and of workers, or those of a server. It has no goroutine of its own beside
// those of its connection.
type client struct {
	h     *history
	name  string
	rand  *rand.Rand
	proxy *redistest.Proxy
	store *redisstate.Store
	old   []*redisstate.Store // connections of processes that have crashed
	sent  sent
	calls int
	later []rules.Move // decided from what an earlier step has read
}

func newClient(h *history, i int, r *rand.Rand) *client {
	c := &client{h: h, name: "c" + strconv.Itoa(i), rand: r, proxy: redistest.NewProxy(h, h.redis.Addr)}
	c.connect()
	return c
}

func (c *client) connect() {
	if c.store != nil {
		c.old = append(c.old, c.store)
	}
	c.store = c.h.connect(c.proxy.Addr)
	c.store.Conn.Redis.AddHook(&c.sent)
}

func (c *client) run(isServer bool) {
	step, steps := c.step, c.h.steps/c.h.clients
	if isServer {
		srv := server.NewOn(c.name, config.Server{}, watched{server.StoreOf(c.store), c}, testspace.Silent)
		step = func(ctx context.Context) {
			_, err := srv.RunOnce(ctx)
			c.unknown(ctx, "server", err)
		}
		steps /= 3
	}
	for range steps {
		ctx, cancel := context.WithCancel(context.Background())
		if c.chance(25) {
			c.fault(cancel)
		}
		step(ctx)
		crashed := ctx.Err() != nil
		cancel()
		c.proxy.Resume()
		if isServer {
			c.h.wait(2)
			continue
		}
		if crashed && c.chance(50) {
			c.connect()
		}
		c.h.stepDone()
	}
	for _, s := range append(c.old, c.store) {
		s.Close()
	}
	if !isServer {
		c.h.mu.Lock()
		defer c.h.mu.Unlock()
		c.h.working--
		c.h.moved.Broadcast()
	}
}

func (c *client) chance(percent int) bool { return c.rand.IntN(100) < percent }

func (c *client) step(ctx context.Context) {
	steps := []func(context.Context){
		c.open, c.open, c.turn, c.turn, c.turn, c.report, c.renewAny, c.move, c.move, c.move, c.use,
	}
	if claims := c.h.aboutToSettle(); len(claims) > 0 && c.chance(40) {
		c.renew(ctx, claims, longLease)
		return
	}
	steps[c.rand.IntN(len(steps))](ctx)
}

// unknown reports whether the error of a call means that its outcome is unknown: the client has given up. Any other
// error is a problem.
func (c *client) unknown(ctx context.Context, doing string, err error) bool {
	if err != nil && ctx.Err() == nil {
		c.h.problem(doing, err)
	}
	return err != nil
}

// nextCall returns a name that no other call has.
func (c *client) nextCall() string {
	c.calls++
	return fmt.Sprintf("%s-%d", c.name, c.calls)
}

func (c *client) definition() task.Properties {
	d := task.Defaults("p", "rsync:/p/run.sh", "")
	d.MaxFails, d.MaxLosses = c.rand.IntN(3), c.rand.IntN(4)
	if c.chance(15) {
		d.Timeout, d.MaxTimeouts = 1e-6, c.rand.IntN(3)
	}
	if c.chance(10) {
		d.EndBefore = 1
	}
	if !c.h.plain && c.chance(40) {
		d.LimitKey = limited[c.rand.IntN(len(limited))]
	}
	return d
}

func (c *client) open(ctx context.Context) {
	if c.chance(40) {
		c.openOnce(ctx)
		return
	}
	definitions := []task.Properties{c.h.add(c.definition())}
	for range c.rand.IntN(3) {
		definitions = append(definitions, c.h.add(c.definition()))
	}
	if c.chance(65) {
		definitions = definitions[:1]
		d := &definitions[0]
		if d.Unique = "f" + strconv.Itoa(c.rand.IntN(2)); c.chance(60) {
			d.Unique, d.UniqueUntil = untilArchived+d.Unique, task.UntilArchived
		}
		c.h.set(*d)
	}
	begun := c.h.tick()
	opened, err := c.store.OpenAll(ctx, c.name, "", definitions...)
	unknown := c.unknown(ctx, "open", err)
	ops := make([]op, len(definitions))
	for i, d := range definitions {
		ops[i] = op{kind: string(rules.VerbOpen), input: d.Input}
		if i < len(opened) {
			ops[i].id, ops[i].existing = opened[i].ID, opened[i].Existing
		}
	}
	c.h.record(begun, unknown, ops...)
}

// openOnce opens a task with a request, or repeats a request of any client.
func (c *client) openOnce(ctx context.Context) {
	d := c.h.request(c.chance(50), c.rand.IntN)
	if d.Input == "" {
		d = c.h.add(c.definition())
		c.h.mu.Lock()
		c.h.requests = append(c.h.requests, d)
		c.h.mu.Unlock()
	}
	begun := c.h.tick()
	o := op{kind: string(rules.VerbOpen), input: d.Input, once: true}
	in, err := c.store.Conn.Once(ctx, "request-"+d.Input, d.Input, func() error { return nil })
	if err == nil {
		var ids []int64
		if ids, err = c.store.Open(in, c.name, d); err == nil {
			o.id = ids[0]
		}
	}
	c.h.record(begun, c.unknown(ctx, "open once", err), o)
}

// turn reports some claims, and claims tasks.
func (c *client) turn(ctx context.Context) {
	r := redisstate.ClaimParams{Worker: c.nextCall(), Most: 1 + c.rand.IntN(3), Lease: c.lease()}
	var moves []rules.Move
	var ops []op
	if claims := c.h.held(); len(claims) > 0 {
		for range c.rand.IntN(3) {
			moves, ops = c.addReport(moves, ops, c.pick(claims), "")
		}
	}
	begun := c.h.tick()
	outcomes, claimed, err, claimErr := c.store.Turn(ctx, ctx, r, moves...)
	unknown := c.unknown(ctx, "report", err)
	c.outcomes(begun, unknown, moves, ops, outcomes)
	unknown = c.unknown(ctx, "claim", claimErr) || unknown
	c.h.recordClaims(begun, unknown, r.Worker, r.Lease == longLease, claimed.Claims)
}

func (c *client) lease() task.Seconds {
	if c.chance(50) {
		return 1e-6
	}
	return longLease
}

// longLease is a lease that does not end in a history.
const longLease = task.Seconds(24 * 3600)

// addReport adds the report of a claim, if none of its task is there.
func (c *client) addReport(moves []rules.Move, ops []op, x redisstate.Claim, forged string) ([]rules.Move, []op) {
	for _, m := range moves {
		if m.ID == x.Task.ID {
			return moves, ops
		}
	}
	result := rules.Result{Output: x.ID, Exit: "0"}
	if c.chance(40) {
		result.Error = "e"
	}
	m, err := rules.Execute(x.Task, x.ID+forged, result)
	if err != nil {
		c.h.problem("report", err)
		return moves, ops
	}
	if result.Error == "" && c.chance(50) {
		m = m.Settled(x.Task, result)
	}
	return append(moves, m), append(ops, opOf(m))
}

func opOf(m rules.Move) op {
	return op{
		kind: string(m.Verb), id: m.ID, from: m.From, to: m.To, round: m.Round, next: m.Next,
		claim: m.Claim, fenced: m.Due != "", result: m.HasResult(),
	}
}

// report reports a claim, sometimes with the claim id of a worker that does not have the task.
func (c *client) report(ctx context.Context) {
	claims := c.h.held()
	if len(claims) == 0 {
		return
	}
	forged := ""
	if c.chance(40) {
		forged = "x"
	}
	moves, ops := c.addReport(nil, nil, c.pick(claims), forged)
	begun := c.h.tick()
	outcomes, err := c.store.Execute(ctx, c.nextCall(), moves...)
	c.outcomes(begun, c.unknown(ctx, "report", err), moves, ops, outcomes)
}

// outcomes records the outcomes of moves.
func (c *client) outcomes(begun int64, unknown bool, moves []rules.Move, ops []op, outcomes []redisstate.Outcome) {
	for i := range outcomes {
		var state *rules.StateError
		var unique *task.UniqueError
		switch err := outcomes[i].Err; {
		case errors.As(err, &unique):
			ops[i].refused, ops[i].holder = true, unique.Holder
		case errors.As(err, &state):
			ops[i].refused, ops[i].state, ops[i].found = true, state.State, state.Round
		case err != nil:
			c.h.problem(string(moves[i].Verb), err)
		}
	}
	c.h.record(begun, false, ops[:len(outcomes)]...)
	c.h.record(begun, unknown, ops[len(outcomes):]...)
}

// pick returns one of some claims, often one of the last ones.
func (c *client) pick(claims []redisstate.Claim) redisstate.Claim {
	if c.chance(60) {
		claims = claims[max(0, len(claims)-6):]
	}
	return claims[c.rand.IntN(len(claims))]
}

func (c *client) renewAny(ctx context.Context) {
	claims := c.h.held()
	if len(claims) > 0 {
		c.renew(ctx, claims, c.lease())
	}
}

// renew renews one of some claims.
func (c *client) renew(ctx context.Context, claims []redisstate.Claim, lease task.Seconds) {
	x, begun := c.pick(claims), c.h.tick()
	renewed, err := c.store.Renew(ctx, lease, redisstate.LeaseRenewal{
		ID: x.Task.ID, Round: x.Task.Round, Claim: x.ID,
	})
	o := op{kind: kindRenew, from: task.Running, id: x.Task.ID, round: x.Task.Round, claim: x.ID, long: lease == longLease}
	unknown := c.unknown(ctx, "renew", err)
	if !unknown && renewed.Lost[0] != nil {
		var state *rules.StateError
		if !errors.As(renewed.Lost[0], &state) {
			c.h.problem("renew", renewed.Lost[0])
			return
		}
		o.refused, o.state, o.found = true, state.State, state.Round
	}
	c.h.record(begun, unknown, o)
}

// move reads tasks, and makes moves that were decided from what this step or an earlier one has read.
func (c *client) move(ctx context.Context) {
	ids := c.h.someIDs(3, c.rand.IntN)
	begun := c.h.tick()
	stored, err := c.store.Read(ctx, ids, redisstate.Want{Fields: redisstate.Facts | redisstate.Rules})
	if c.unknown(ctx, "read", err) {
		return
	}
	var reads []op
	for _, t := range stored {
		if t.Task == nil {
			c.h.record(begun, false, op{kind: kindRead, id: t.ID})
			continue
		}
		reads = append(reads, op{kind: kindRead, id: t.ID, state: t.Task.State, found: t.Task.Round})
		if m, ok := c.decide(t.Task); ok {
			c.later = append(c.later, m)
		}
	}
	c.h.record(begun, false, reads...)
	c.rand.Shuffle(len(c.later), func(i, j int) { c.later[i], c.later[j] = c.later[j], c.later[i] })
	var units []redisstate.Unit
	var moves []rules.Move
	var ops []op
	used := map[int64]bool{}
	for _, m := range c.later[:min(len(c.later), 1+c.rand.IntN(3))] {
		if !used[m.ID] {
			used[m.ID] = true
			units, moves, ops = append(units, redisstate.Unit{Moves: []rules.Move{m}}), append(moves, m), append(ops, opOf(m))
		}
	}
	c.later = c.later[min(len(c.later), 3):] // some moves are never made, and some are made again
	for _, m := range moves {
		if c.chance(30) {
			c.later = append(c.later, m)
		}
	}
	if len(units) == 0 {
		return
	}
	begun = c.h.tick()
	outcomes, err := c.store.Apply(ctx, c.name, units...)
	c.outcomes(begun, c.unknown(ctx, "move", err), moves, ops, outcomes)
}

// decide returns a move of a manager or of an operator.
func (c *client) decide(t *task.Task) (m rules.Move, ok bool) {
	var err error
	switch {
	case t.State.Settled() && c.chance(60) && (t.Unique == "" || c.chance(60)):
		m, err = rules.Archive(t)
	case t.State.Finished():
		m, err = rules.Reopen(t)
	case t.State == task.Running && c.chance(30):
		m, err = rules.Requeue(t, false)
	case t.State != task.Executed && c.chance(8):
		m, err = rules.Cancel(t)
	default:
		return m, false
	}
	return m, err == nil
}

func (c *client) use(ctx context.Context) {
	key, begun := limited[c.rand.IntN(len(limited))], c.h.tick()
	uses, err := c.store.Limits.LimitUses(ctx, key)
	if !c.unknown(ctx, "use", err) {
		c.h.record(begun, false, op{kind: kindUse, limit: key, running: uses[0].Running})
	}
}

// watched is the store of a server. It records the moves of the server, and makes some of them late.
type watched struct {
	server.Store
	c *client
}

func (s watched) Apply(ctx context.Context, who string, units ...redisstate.Unit) ([]redisstate.Outcome, error) {
	if s.c.chance(50) {
		s.c.h.settle(units)
		s.c.h.wait(1 + s.c.rand.IntN(6))
	}
	begun := s.c.h.tick()
	outcomes, err := s.Store.Apply(ctx, who, units...)
	for i, u := range units {
		m := u.Moves[0]
		if !slices.ContainsFunc(rules.Transitions, func(tr rules.Transition) bool { return tr.Verb == m.Verb }) {
			continue
		}
		var o []redisstate.Outcome
		if i < len(outcomes) {
			o = outcomes[i : i+1]
		}
		s.c.outcomes(begun, s.c.unknown(ctx, "settle", err), u.Moves, []op{opOf(m)}, o)
	}
	return outcomes, err
}
