package linear

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/redisstate"
)

// A size says how large a history is.
type size struct {
	clients, servers int
	steps            int  // of all clients together
	restarts         int  // of Redis
	plain            bool // tasks have no limit keys, so that the fast paths of the scripts run
}

var (
	small = size{clients: 4, servers: 1, steps: 300}
	usual = size{clients: 5, servers: 2, steps: 400, restarts: 2}
)

// A history is a namespace with the calls that its clients have made.
type history struct {
	testing.TB
	size
	connected func(s *redisstate.Store) // changes each connection; may be nil

	cfg   config.Redis
	space string
	redis *redistest.Server
	raw   *redis.Client // without a proxy

	restart chan struct{}

	mu       sync.Mutex
	moved    sync.Cond // working or done has changed
	working  int       // clients that have steps left
	done     int       // steps
	now      int64     // starts and answers so far
	ops      []op
	tasks    map[string]task.Properties // by input
	inputs   map[int64]string
	claims   []redisstate.Claim
	requests []task.Properties // tasks that were opened with a request, which any client may repeat
	lost     []op              // opens without an answer
	claiming map[string]op     // the calls that claim, by the worker, of which each call has another
	answered map[string]bool   // the rounds that these calls have returned
	faults   map[string]int
	settling []int64  // the tasks that a server is about to settle
	problems []string // errors that are no answers
}

// begin prepares a history.
func (h *history) begin() {
	h.Helper()
	h.moved.L = &h.mu
	h.tasks, h.inputs, h.faults = map[string]task.Properties{}, map[int64]string{}, map[string]int{}
	h.claiming, h.answered = map[string]op{}, map[string]bool{}
	h.cfg, h.space = h.config(h.redis.Addr), redistest.Namespace(h)
	h.raw = redistest.Client(h, redis.Options{Addr: h.redis.Addr, DB: h.cfg.DB, MaxRetries: -1})
}

// run makes a history. The order of the steps of each client comes from the seed.
func (h *history) run(seed uint64) {
	h.Helper()
	h.begin()
	defer h.raw.Close()
	h.working, h.restart = h.clients, make(chan struct{}, h.restarts)
	s := h.connect(h.redis.Addr)
	for _, key := range limited {
		expect.NoError(h, s.Limits.SetLimit(h.Context(), key, task.Limit{AtMost: atMost}))
	}
	var all sync.WaitGroup
	for i := range h.clients + h.servers {
		c := newClient(h, i, rand.New(rand.NewPCG(seed, uint64(i))))
		all.Go(func() { c.run(i >= h.clients) })
	}
	for range h.restarts {
		<-h.restart
		h.redis.Restart()
	}
	all.Wait()
	h.readAll(s)
	expect.NoError(h, s.Close())
}

// config returns the configuration of a connection to this address.
func (h *history) config(addr string) config.Redis {
	host, port, _ := net.SplitHostPort(addr)
	n := expect.Result(strconv.Atoi(port)).Value(h)
	return config.Redis{Host: host, Port: n, DB: redistest.Database(h)}
}

func (h *history) connect(addr string) *redisstate.Store {
	s, err := redisstate.Connect(h.Context(), h.config(addr), h.space, testspace.Silent)
	expect.NoError(h, err)
	if h.connected != nil {
		h.connected(s)
	}
	return s
}

// tick returns a number that is higher than all before.
func (h *history) tick() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now++
	return h.now
}

// record adds calls that have begun at the given tick, and returns when they end. If the outcome is unknown, they end
// never.
func (h *history) record(begun int64, unknown bool, ops ...op) (ends int64) {
	if ends = h.tick(); unknown {
		ends = never
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range ops {
		o.call, o.ends = begun, ends
		if unknown && o.id == 0 {
			h.lost = append(h.lost, o)
			continue
		}
		if o.id != 0 && o.input != "" && !o.existing && h.inputs[o.id] == "" {
			h.inputs[o.id] = o.input
		}
		h.ops = append(h.ops, o)
	}
	return ends
}

func (h *history) count(fault string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults[fault]++
}

// stepDone counts a step, and asks for a restart when it is time.
func (h *history) stepDone() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done++
	h.moved.Broadcast()
	if h.restarts > 0 && h.done%(h.steps/(h.restarts+1)) == 0 {
		select {
		case h.restart <- struct{}{}:
		default:
		}
	}
}

// wait waits until the other clients have made some steps, or have no more.
func (h *history) wait(steps int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for until := h.done + steps; h.done < until && h.working > 0; {
		h.moved.Wait()
	}
}

// readAll reads all tasks after the last call. So calls without an answer are known to have opened or claimed a task.
func (h *history) readAll(s *redisstate.Store) {
	ctx := context.Background()
	begun := h.tick()
	var ids []int64
	for _, key := range expect.Result(h.raw.Keys(ctx, s.Keys.TaskPrefix()+"*").Result()).Value(h) {
		id, err := strconv.ParseInt(strings.TrimPrefix(key, s.Keys.TaskPrefix()), 10, 64)
		if err == nil {
			ids = append(ids, id)
		}
	}
	found := map[string][]op{}
	for input := range h.tasks {
		found[input] = nil
	}
	for _, t := range expect.Result(s.Read(ctx, ids, redisstate.Want{Fields: redisstate.Whole})).Value(h) {
		if t.Task != nil {
			found[t.Task.Input] = append(found[t.Task.Input], h.find(t.Task)...)
		}
	}
	for input, of := range found {
		if len(of) == 0 {
			of = []op{{kind: kindRead, input: input}}
		}
		h.record(begun, false, of...)
	}
	for _, use := range expect.Result(s.Limits.LimitUses(ctx, limited...)).Value(h) {
		h.record(begun, false, op{kind: kindUse, limit: use.Key, running: use.Running})
	}
	now := expect.Result(s.Now(ctx)).Value(h)
	for i := range h.ops {
		o := &h.ops[i]
		if o.input == "" {
			o.input = h.inputs[o.id]
		}
		if d := h.tasks[o.input]; o.kind != kindUse {
			o.key, o.limit, o.overdue = d.Unique, d.LimitKey, d.EndBefore < now
		}
	}
}

// find records the calls that have opened or claimed a task, as far as their answers did not say so. It returns the
// read of the task.
func (h *history) find(t *task.Task) []op {
	for _, o := range h.lost {
		if o.input == t.Input {
			o.id = t.ID
			h.ops = append(h.ops, o)
		}
	}
	read := op{kind: kindRead, input: t.Input, id: t.ID, state: t.State, found: t.Round, whole: true}
	for n, r := range t.Rounds.All() {
		if r.Output != "" {
			read.results += r.Output + ";"
		}
		o, ok := h.claiming[r.Worker]
		if !ok || h.answered[nameOfRound(r.Worker, t.ID, n)] {
			continue
		}
		o.id, o.input, o.round, o.claim = t.ID, t.Input, n, anyClaim
		h.ops = append(h.ops, o)
		if o.kind = kindGone; o.ends != never {
			h.ops = append(h.ops, o)
		}
	}
	return []op{read}
}

func nameOfRound(worker string, id int64, round int) string {
	return fmt.Sprint(worker, " ", id, " ", round)
}

// recordClaims records the answer to a call that claims.
func (h *history) recordClaims(begun int64, unknown bool, worker string, long bool, claims []redisstate.Claim) {
	var ops []op
	for _, c := range claims {
		ops = append(ops, op{
			kind: string(rules.VerbClaim), input: c.Task.Input, id: c.Task.ID, round: c.Task.Round, claim: c.ID, long: long,
		})
	}
	ends := h.record(begun, false, ops...)
	h.mu.Lock()
	defer h.mu.Unlock()
	if unknown {
		ends = never
	}
	h.claiming[worker] = op{kind: string(rules.VerbClaim), call: begun, ends: ends, long: long}
	for _, o := range ops {
		h.answered[nameOfRound(worker, o.id, o.round)] = true
	}
	h.claims = append(h.claims, claims...)
}

// add adds a definition whose input is unique in the history.
func (h *history) add(d task.Properties) task.Properties {
	h.mu.Lock()
	defer h.mu.Unlock()
	d.Input = fmt.Sprintf("task-%d", len(h.tasks))
	h.tasks[d.Input] = d
	return d
}

// held returns the last claims.
func (h *history) held() []redisstate.Claim {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.claims[max(0, len(h.claims)-30):])
}

// settle notes the tasks that a server is about to settle.
func (h *history) settle(units []redisstate.Unit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settling = nil
	for _, u := range units {
		h.settling = append(h.settling, u.Moves[0].ID)
	}
}

// aboutToSettle returns the claims of tasks that a server is about to settle.
func (h *history) aboutToSettle() (claims []redisstate.Claim) {
	all := h.held()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range all {
		if slices.Contains(h.settling, c.Task.ID) {
			claims = append(claims, c)
		}
	}
	return claims
}

func (h *history) problem(doing string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.problems = append(h.problems, doing+": "+err.Error())
}

// set changes a definition.
func (h *history) set(d task.Properties) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tasks[d.Input] = d
}

// request returns the task of an earlier request, if there is one and the caller wants it.
func (h *history) request(wanted bool, choose func(int) int) (d task.Properties) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if wanted && len(h.requests) > 0 {
		d = h.requests[choose(len(h.requests))]
	}
	return d
}

// someIDs returns different ids of tasks, most of them of the last ones.
func (h *history) someIDs(n int, choose func(int) int) (ids []int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := slices.Sorted(maps.Keys(h.inputs))
	known = known[max(0, len(known)-25):]
	for range min(n, len(known)) {
		if id := known[choose(len(known))]; !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}
