package worker

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tdf-framework/tdf/broker"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A namespace is one whose tasks the worker runs, with what the worker knows there.
type namespace struct {
	ns       string
	log      *slog.Logger
	broker   protocol // nil while the worker is not connected
	breakers breakers
	drain    drain
}

func (w *Worker) newNamespace(name string, log *slog.Logger) *namespace {
	return &namespace{
		ns: name, log: log, breakers: newBreakers(w.cfg.MaxFailuresInRow, w.cfg.SleepAfterFailure, log), drain: newDrain(),
	}
}

// newNamespaces returns the namespaces of the configuration.
func (w *Worker) newNamespaces() (all []*namespace) {
	if len(w.cfg.Namespaces) < 2 {
		return []*namespace{w.newNamespace(w.cfg.Namespace, w.log)}
	}
	for _, name := range w.cfg.Namespaces {
		all = append(all, w.newNamespace(name, w.log.With("namespace", name)))
	}
	return all
}

// several reports whether the worker serves several namespaces.
func (w *Worker) several() bool { return len(w.namespaces) > 1 }

// nameOf returns the name that a task of a namespace has in the names of files: its id, or NAMESPACE-ID if the worker
// serves several namespaces, since their tasks have the same ids.
func (w *Worker) nameOf(n *namespace, id int64) string {
	name := strconv.FormatInt(id, 10)
	if w.several() {
		name = fileName(n.ns) + "-" + name
	}
	return name
}

// longestPart bounds the part of a file's name that comes from a namespace, in bytes.
const longestPart = 60

// fileName returns a namespace as a part of a file's name. Two namespaces never have the same part.
func fileName(ns string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, ns)
	if safe == ns && len(ns) <= longestPart {
		return ns
	}
	sum := sha256.Sum256([]byte(ns))
	return fmt.Sprintf("%s.%x", safe[:min(len(safe), longestPart)], sum[:8])
}

// called returns the namespace of a name that [record.RoundRef] has, or nil.
func (w *Worker) called(name string) *namespace {
	if !w.several() && name == "" {
		return w.namespaces[0]
	}
	for _, n := range w.namespaces {
		if w.several() && n.ns == name {
			return n
		}
	}
	return nil
}

// state returns the worker's state for its heartbeats, except while the worker stops.
func (n *namespace) state() string {
	if n.drain.on() {
		return presence.WorkerDraining
	}
	return presence.WorkerWorking
}

// A lane is what a supervisor does for one namespace: it claims and runs its tasks, renews their leases, and reports
// them. The lanes share the slots. Each has loops of its own, so that the Redis of one namespace delays no other.
type lane struct {
	*supervisor
	*namespace

	alive       context.Context // done when the programs of this namespace must end
	endPrograms context.CancelCauseFunc
	nameLost    atomic.Pointer[broker.NameTaken] // nil unless another worker has taken the name

	held  map[*execution]bool // executions that are not yet reported; the lock is mu
	ended []*execution        // those that have ended and are not in a report yet; the lock is mu

	stock *stock // prefetched tasks

	freed             signal      // there may be a free slot, or there are more resources free, for this lane
	refused           atomic.Bool // the lane waits for the end of the claim that uses the free resources
	turns             int         // reports in a row that claimed tasks while other lanes waited; the lock is mu
	renewed, reported signal
	reporting         chan struct{} // a lock, so that only one call at a time reports running rounds

	passing atomic.Bool // the last claims have met tasks that the worker must not get
}

func newLane(s *supervisor, n *namespace) *lane {
	l := &lane{
		supervisor: s, namespace: n, held: map[*execution]bool{}, stock: newStock(),
		reporting: make(chan struct{}, 1), freed: make(signal, 1), renewed: make(signal, 1), reported: make(signal, 1),
	}
	l.alive, l.endPrograms = context.WithCancelCause(s.alive)
	return l
}

// startLoops starts the loops of the lane, which end with the context looping.
func (s *lane) startLoops() {
	looping, delivering := s.looping, s.delivering
	s.loops.Go(func() { s.keepLeases(looping) })
	s.loops.Go(func() { s.reportRunning(looping) })
	s.loops.Go(func() { s.report(looping, delivering) })
	s.loops.Go(func() { s.keepStock(looping) })
	s.loops.Go(func() { s.markStarted(looping) })
}

// mostTurns is how many reports in a row a lane may use to claim tasks for the slots of its own results, while another
// lane waits for a slot.
const mostTurns = 8

// fairShare returns how many of the free slots the lane may reserve. handed of them come from results that the lane
// reports. The lanes that wait take free slots in turn, and after mostTurns reports a lane leaves its own slots to
// them. So endless tasks of one namespace keep no other namespace waiting. The caller has the lock mu.
func (s *lane) fairShare(free, handed int) int {
	others := slices.ContainsFunc(s.waiting, func(l *lane) bool { return l != s })
	switch {
	case handed > 0 && !others:
		s.turns = 0
	case handed > 0 && s.turns == mostTurns:
		s.turns, free = 0, 0
		if slices.Contains(s.waiting, s) { // the others come first, even if they began to wait later
			s.forget(s)
			s.waiting = append(s.waiting, s)
		}
	case handed > 0:
		s.turns++
		free = min(free, handed)
	case free == 0 || others && s.waiting[0] != s:
		if !slices.Contains(s.waiting, s) {
			s.waiting = append(s.waiting, s)
		}
		free = 0
	default:
		s.forget(s)
	}
	return free
}

// leaveQueue says that the lane does not wait for a slot.
func (s *lane) leaveQueue() {
	s.mu.Lock()
	s.forget(s)
	s.mu.Unlock()
	s.wake()
}

func (s *supervisor) forget(l *lane) {
	s.waiting = slices.DeleteFunc(s.waiting, func(x *lane) bool { return x == l })
}

// wake wakes the first lane that waits for a slot.
func (s *supervisor) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) > 0 {
		s.waiting[0].freed.give()
	}
}

// patience is how long a claim keeps slots from other lanes while Redis does not answer.
const patience = 2 * time.Second

// holdReservation ends a reservation when the returned function is called. If Redis does not answer a claim, it ends
// the reservation earlier, so that other lanes use the slots. Tasks that come with a late answer are released, unless
// there are free slots for them.
func (s *lane) holdReservation(n, prefetch int, results []*execution) (end func()) {
	if !s.several() {
		return func() { s.endReservation(n, prefetch, results) }
	}
	once := sync.OnceFunc(func() { s.endReservation(n, prefetch, results) })
	late, answered := s.after(patience), make(chan struct{})
	go func() {
		select {
		case <-late:
			once()
		case <-answered:
		}
	}()
	return func() {
		close(answered)
		once()
	}
}

// executions returns the executions of the lane, in no particular order.
func (s *lane) executions() []*execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*execution, 0, len(s.held))
	for e := range s.held {
		all = append(all, e)
	}
	return all
}

// allExecutions returns the executions of all lanes.
func (s *supervisor) allExecutions() (all []*execution) {
	for _, l := range s.lanes {
		all = append(all, l.executions()...)
	}
	return all
}
