package web

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// An eventHub reads what happens in the namespace, and passes it on to all clients. It asks Redis as often for a
// thousand clients as for one, and never without clients.
type eventHub struct {
	*api
	pause, heartbeat time.Duration
	catching         chan struct{} // holds an element for each client that reads what it has missed
	followed         *pool.Pool    // of tasks whose outputs clients follow, by token

	mu          sync.Mutex
	subscribers map[*subscriber]bool
	follows     map[int64]*follow
	begun       chan struct{} // closed when the reader has found its position; nil without clients
	stop        context.CancelFunc
	position    string // all earlier events are in the queues of their clients
	looks       int    // the number of looks at Redis, for tests
	fails       int    // the number of looks that failed, for tests
}

// A follow is the reader of the output of one task.
type follow struct {
	clients int
	stop    context.CancelFunc
}

func newEventHub(a *api) *eventHub {
	return &eventHub{
		api: a, pause: eventsPause, heartbeat: eventsHeartbeat, catching: make(chan struct{}, catchingUp),
		followed:    pool.New(maxFollowed),
		subscribers: map[*subscriber]bool{}, follows: map[int64]*follow{},
	}
}

// join adds a client. When join returns, the client gets everything that happens from then on.
func (h *eventHub) join(ctx context.Context, s *subscriber) (leave func(), err error) {
	begun, err := h.add(s)
	if err != nil {
		return nil, err
	}
	select {
	case <-begun:
		return func() { h.remove(s) }, nil
	case <-ctx.Done():
		h.remove(s)
		return nil, ctx.Err()
	}
}

func (h *eventHub) add(s *subscriber) (begun chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.kinds[outputEvents] {
		if err := h.followed.Take(s.who, int64(len(s.ids))); err != nil {
			return nil, err
		}
	}
	if h.begun == nil {
		ctx, stop := context.WithCancel(context.Background())
		h.begun, h.stop = make(chan struct{}), stop
		go h.run(ctx, h.begun)
	}
	h.subscribers[s] = true
	if s.kinds[outputEvents] {
		for id := range s.ids {
			if h.follows[id] == nil {
				ctx, stop := context.WithCancel(context.Background())
				h.follows[id] = &follow{stop: stop}
				go h.follow(ctx, id)
			}
			h.follows[id].clients++
		}
	}
	return h.begun, nil
}

func (h *eventHub) remove(s *subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subscribers, s)
	if s.kinds[outputEvents] {
		h.followed.Return(s.who, int64(len(s.ids)))
		for id := range s.ids {
			if f := h.follows[id]; f.clients == 1 {
				f.stop()
				delete(h.follows, id)
			} else {
				f.clients--
			}
		}
	}
	if len(h.subscribers) == 0 {
		h.stop()
		h.begun = nil
	}
}

// at returns the position of the hub: a client that begins there misses nothing.
func (h *eventHub) at() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.position
}

// put adds an event to the queue of a client, and reports whether there is room.
func (s *subscriber) put(e *event) bool {
	if s.account.Take(int64(len(e.frame))) != nil {
		return false
	}
	select {
	case s.queue <- e:
		return true
	default:
		return false
	}
}

// publish passes an event on to the clients that want it. A client whose queue is full is cut off.
func (h *eventHub) publish(e *event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subscribers {
		if !s.wants(e) {
			continue
		}
		if s.signal != nil {
			select {
			case s.signal <- struct{}{}:
			default: // it has a signal that it has not read yet
			}
			continue
		}
		if !s.put(e) {
			select {
			case <-s.cut:
			default:
				close(s.cut)
			}
		}
	}
}

// anyWants reports whether any client wants events of a type.
func (h *eventHub) anyWants(kind string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subscribers {
		if s.kinds[kind] {
			return true
		}
	}
	return false
}

// run looks at Redis until ctx ends.
func (h *eventHub) run(ctx context.Context, begun chan struct{}) {
	r := eventReader{eventHub: h, begun: begun, known: map[int64]progressOf{}}
	for going := true; going; going = conn.Sleep(ctx, h.pause) {
		if err := r.look(ctx); err != nil && ctx.Err() == nil {
			r.failed(err)
		}
	}
}

func (r *eventReader) failed(err error) {
	if !r.away {
		r.Log.Warn("events are late", "error", err)
	}
	r.away = true
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fails++
}

// An eventReader reads what the hub publishes.
type eventReader struct {
	*eventHub
	begun   chan struct{}
	changes *admin.Changes // nil before the first look
	away    bool           // Redis did not answer

	known  map[int64]progressOf
	cursor string // of the next page of running tasks
	cycle  int
}

// A progressOf is the last known progress of a task.
type progressOf struct {
	round int
	task.Progress
	cycle int // when it was last seen
}

// look publishes what has happened since the last look.
func (r *eventReader) look(ctx context.Context) error {
	bound, cancel := context.WithTimeout(ctx, 10*r.Timeout)
	defer cancel()
	if r.changes == nil {
		return r.begin(bound)
	}
	if err := r.publishChanges(bound); err != nil {
		return err
	}
	if r.anyWants(progressEvents) {
		return r.publishProgress(bound)
	}
	return nil
}

func (r *eventReader) begin(ctx context.Context) error {
	now, err := r.manager.Now(ctx)
	if err != nil {
		return err
	}
	r.changes = r.admin.Changes(now)
	r.move()
	close(r.begun)
	return nil
}

// move sets the position of the hub.
func (r *eventReader) move() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.position = task.At(r.changes.At()).String()
	r.looks++
}

func (r *eventReader) publishChanges(ctx context.Context) error {
	at := r.at()
	for more := true; more; {
		var found []admin.Change
		var err error
		if found, more, err = r.changes.Next(ctx); err != nil {
			return err
		}
		if r.away { // Redis may have lost its last writes
			r.away = false
			r.publish(gap("Redis did not answer for some time"))
		}
		if r.changes.Lost {
			r.publish(gap("the clock of Redis was set back"))
		}
		for i := range found {
			r.publish(stateEvent(&found[i], at))
		}
	}
	r.move()
	return nil
}

// publishProgress reads the progress of some running tasks.
func (r *eventReader) publishProgress(ctx context.Context) error {
	page, err := r.manager.Page(ctx, manager.Query{States: []task.State{task.Running}, Order: manager.OldestFirst},
		r.cursor, progressAtOnce)
	if err != nil {
		return err
	}
	for _, t := range page.Tasks {
		now := progressOf{round: t.Round, cycle: r.cycle}
		if round := t.RoundNumber(t.Round); round != nil && round.Progress != nil {
			now.Progress = *round.Progress
		}
		before := r.known[t.ID]
		changed := now.Progress != before.Progress || now.round != before.round
		r.known[t.ID] = now
		if changed && now.Progress != (task.Progress{}) {
			r.publish(newEvent(progressEvents, t.ID, t.Group, t.Owner, "", progressData{t.ID, t.Round, &now.Progress}))
		}
	}
	if r.cursor = page.Next; r.cursor == "" {
		maps.DeleteFunc(r.known, func(_ int64, p progressOf) bool { return p.cycle < r.cycle })
		r.cycle++
	}
	return nil
}

// follow publishes the output of a task, round by round.
func (h *eventHub) follow(ctx context.Context, id int64) {
	for ctx.Err() == nil {
		t, r, err := h.admin.CurrentRound(ctx, id)
		if err == nil && !admin.RoundEnded(t, r.Number) {
			for part, err := range h.admin.FollowOutput(ctx, t, r) {
				if err != nil {
					break // the loop tries again
				}
				h.publish(outputEvent(&part))
			}
		}
		conn.Sleep(ctx, h.pause)
	}
}
