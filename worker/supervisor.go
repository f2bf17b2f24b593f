package worker

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/worker/record"
	"github.com/tdf-framework/tdf/internal/worker/rounddir"
)

// A supervisor is a running worker: its slots, its executions and their loops. One loop reports rounds and gets tasks
// (exchange.go). Another loop renews the leases (lease.go). A third loop reports the rounds that run (livereport.go).
type supervisor struct {
	*Worker
	// What ends these contexts, and when, is a table in docs/operations.md, "Stopping a worker". All end at the latest
	// when all executions are reported.
	claiming       context.Context // done when the worker must claim no more
	awaitingAnswer context.Context // done when the worker gives up waiting for the answer to a claim
	running        context.Context // done when programs must end
	leaving        context.Context // done when the worker leaves handlers behind that ignore the end of running
	reporting      context.Context // done when a worker that stops gives up reporting results and removing directories

	endClaims   context.CancelCauseFunc // ends claiming
	endPrograms context.CancelCauseFunc // ends running

	nameLost atomic.Pointer[broker.NameTaken] // nil unless another worker has taken the name

	tasks    chan *execution // prefetched tasks, for the slots
	ended    chan *execution // rounds that have ended, for the exchange
	freed    signal          // there is a free slot
	noClaims chan struct{}   // closed when the worker claims no more, and no claim is under way
	begun    chan struct{}   // closed when the worker has cleaned up, and may claim

	mu       sync.Mutex
	held     map[*execution]bool // executions that are not yet reported
	stock    stock
	busy     int             // slots that have an execution, or pause after one
	taken    []bool          // whether each slot is busy
	left     []string        // rounds whose handlers were left behind
	diskFull error           // ends the worker
	dirs     []*rounddir.Dir // directories that no round uses at present

	spool record.Spool // the output files of rounds

	claimed             signal
	reportingLive       chan struct{} // a lock, so that only one call at a time reports running rounds
	work, loops, pauses sync.WaitGroup

	once atomic.Bool // the worker claims no tasks by itself
}

// A signal wakes one waiting goroutine, or the next one that waits.
type signal chan struct{}

func (s signal) give() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// supervise returns a supervisor whose loops have not begun. end waits until all executions are reported, and ends the
// supervisor.
func (w *Worker) supervise(claiming context.Context) (s *supervisor, end func()) {
	s = newSupervisor(w)
	s.claiming, s.endClaims = context.WithCancelCause(claiming)
	until := context.WithoutCancel(claiming)
	var endReports context.CancelCauseFunc
	s.reporting, endReports = w.outlive(s.claiming, until, w.reportBound(), w.answer)
	s.awaitingAnswer, _ = w.outlive(s.claiming, s.reporting, w.answer, w.answer)
	s.running, s.endPrograms = w.outlive(s.claiming, s.reporting, w.cfg.Grace, 0)
	s.leaving, _ = w.outlive(s.running, s.reporting, max(w.cfg.KillGrace, w.leaveBound), w.leaveBound)
	return s, func() {
		s.work.Wait()
		s.endClaims(nil)
		s.pauses.Wait()
		endReports(nil)
		s.loops.Wait()
		s.removeDirs()
	}
}

// startLoops starts the loops. If once is true, they claim no tasks by themselves.
func (s *supervisor) startLoops(once bool) {
	s.once.Store(once)
	s.loops.Go(newExchange(s).run)
	s.loops.Go(func() { s.keepLeases(s.reporting) })
	s.loops.Go(func() { s.reportRunning(s.reporting) })
	if s.cfg.OnLeaseLost == onLeaseLostEnd {
		s.loops.Go(func() { s.endWhenLeasesEnd(s.reporting) })
	}
}

func newSupervisor(w *Worker) *supervisor {
	return &supervisor{
		Worker: w, spool: record.Spool{Dir: w.rounds(), Before: w.lockRounds},
		held: map[*execution]bool{}, reportingLive: make(chan struct{}, 1),
		tasks: make(chan *execution, mostInStock), ended: make(chan *execution, mostInStock),
		stock: stock{short: shortRun, most: prefetchedFor, began: map[int]time.Time{}},
		freed: make(signal, 1), claimed: make(signal, 1), noClaims: make(chan struct{}),
		begun: make(chan struct{}),
	}
}

// executions returns all executions, in no particular order.
func (s *supervisor) executions() []*execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.held))
}
