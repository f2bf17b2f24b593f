package manager

import (
	"context"
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf"
)

// A Watch looks at the tasks of a group, or at all tasks, again and again. It may be used by one goroutine.
type Watch struct {
	m      *Manager
	groups []string
	query  Query // of the tasks that have ended
	seen   []seenDone
	first  seenDone
	runs   []tdf.Seconds
	sought tdf.Time // when runs was read
}

type seenDone struct {
	at   tdf.Time
	done int64
}

// A Status is how things stand at a time.
type Status struct {
	At     tdf.Time
	Counts Counts

	Rate      float64 // tasks done in a second, over the last half minute
	RateSoFar float64 // likewise, since the first look

	Server  tdf.Time // when a server was seen last; 0: never
	Workers int      // that live
	Slots   int      // how many programs they can run at once, as far as they claim any
	Busy    int      // how many tasks run, of all groups

	Estimate Estimate
}

// Done is how many tasks wait for nothing but their manager, or not even that.
func (s *Status) Done() int64 { return done(s.Counts) }

// ServerMissing says whether no server was seen for so long that nothing will be judged.
func (s *Status) ServerMissing() bool { return s.At.Sub(s.Server) > serverPatience }

// Watch returns one for a group; "" is for all tasks.
func (m *Manager) Watch(group string) *Watch {
	w := &Watch{m: m, query: Query{Group: group, States: []tdf.State{
		tdf.Succeeded, tdf.Failed, tdf.TimedOut, tdf.Archived,
	}}}
	if group != "" {
		w.groups = []string{group}
	}
	return w
}

const (
	watchWindow  = tdf.Seconds(30)
	sampledRuns  = 200
	samplePauses = tdf.Seconds(10) // between two readings of the sample
)

// Look asks Redis how things stand. It takes the same time however many tasks there are.
func (w *Watch) Look(ctx context.Context) (Status, error) {
	s, err := w.read(ctx)
	if err != nil {
		return s, fmt.Errorf("watching: %w", err)
	}
	if len(w.runs) < leastRuns || s.At.Sub(w.sought) >= samplePauses {
		if w.runs, err = w.m.lastRuns(ctx, w.query); err != nil {
			return s, fmt.Errorf("watching: %w", err)
		}
		w.sought = s.At
	}
	ended, over := w.note(s.At, s.Done())
	if over > 0 {
		s.Rate = float64(ended) / float64(over)
	}
	if so := s.At.Sub(w.first.at); so > 0 {
		s.RateSoFar = float64(max(0, s.Done()-w.first.done)) / float64(so)
	}
	s.Estimate = Work{
		Waiting: s.Counts[tdf.Open], Running: s.Counts[tdf.Running], Slots: s.Slots, Runs: w.runs, Done: ended, Over: over,
	}.Estimate()
	return s, nil
}

func (w *Watch) read(ctx context.Context) (s Status, err error) {
	if s.At, err = w.m.store.Now(ctx); err != nil {
		return s, err
	}
	if s.Counts, err = w.m.Counts(ctx, w.groups...); err != nil {
		return s, err
	}
	if s.Server, err = w.m.store.LastServer(ctx); err != nil {
		return s, err
	}
	all := s.Counts
	if len(w.groups) > 0 {
		if all, err = w.m.Counts(ctx); err != nil {
			return s, err
		}
	}
	s.Busy = int(all[tdf.Running])
	workers, err := w.m.Workers(ctx)
	for _, worker := range workers {
		if worker.Alive {
			s.Workers++
		}
		if worker.Alive && worker.claims() {
			s.Slots += worker.Slots
		}
	}
	return s, err
}

// claims: it takes tasks, as long as it lives.
func (w *Worker) claims() bool { return w.Drained == "" && w.State != "draining" && w.State != "gone" }

// note returns how many tasks have ended in how many seconds, lately. Tasks that are opened again, or removed,
// are as if they had not ended.
func (w *Watch) note(now tdf.Time, done int64) (ended int64, over tdf.Seconds) {
	if len(w.seen) == 0 {
		w.first = seenDone{now, done}
	}
	w.seen = append(w.seen, seenDone{now, done})
	for len(w.seen) > 2 && now.Sub(w.seen[1].at) >= watchWindow {
		w.seen = w.seen[1:]
	}
	return max(0, done-w.seen[0].done), now.Sub(w.seen[0].at)
}

// lastRuns returns how long the last tasks ran that ended.
func (m *Manager) lastRuns(ctx context.Context, q Query) ([]tdf.Seconds, error) {
	page, err := m.Find(ctx, q, "", sampledRuns)
	var runs []tdf.Seconds
	for _, t := range page.Tasks {
		if took, ran := runTime(t.Current()); ran {
			runs = append(runs, took)
		}
	}
	return runs, err
}

// runTime is how long a round ran: by its worker's account, or else by when it was reported.
func runTime(r *tdf.Round) (took tdf.Seconds, ran bool) {
	end := max(r.Entered[tdf.Executed], r.Timeout)
	switch {
	case r.Seconds > 0:
		return r.Seconds, true
	case end == 0 || r.Entered[tdf.Running] == 0:
		return 0, false
	}
	return max(0, end.Sub(max(r.Entered[tdf.Running], r.Started))), true
}

// CancelOpen gives up the tasks of a group that are open at this moment; "" is for all tasks. Those that run are left
// alone, also where they only just began. It returns how many were given up.
func (m *Manager) CancelOpen(ctx context.Context, group string) (int, error) {
	var acted Acted
	var ids []int64
	for t, err := range m.All(ctx, Query{Group: group, States: []tdf.State{tdf.Open}}) {
		if err != nil {
			return 0, fmt.Errorf("cancelling open tasks: %w", err)
		}
		ids = append(ids, t.ID)
	}
	for page := range slices.Chunk(ids, handBatch) {
		if err := m.actOn(ctx, tdf.VerbCancel, cancelOpen, page, &acted); err != nil {
			return acted.Done, fmt.Errorf("cancelling open tasks: %w", err)
		}
	}
	return acted.Done, nil
}

func cancelOpen(t *tdf.Task) (tdf.Move, error) {
	if t.State != tdf.Open {
		return tdf.Move{}, &tdf.StateError{ID: t.ID, Verb: tdf.VerbCancel, State: t.State, Round: t.Round}
	}
	return t.Cancel()
}

// Outcomes counts the tasks of a group that have ended by their outcomes; "" is for all tasks. Those that are
// archived, or expired, are looked at one by one: 1,000,000 of them take some 10 s.
func (m *Manager) Outcomes(ctx context.Context, group string) (map[string]int64, error) {
	w := m.Watch(group)
	counts, err := m.Counts(ctx, w.groups...)
	if err != nil {
		return nil, fmt.Errorf("counting outcomes: %w", err)
	}
	outcomes := map[string]int64{}
	for _, state := range []tdf.State{tdf.Succeeded, tdf.Failed, tdf.TimedOut} {
		outcomes[string(state)] = counts[state]
	}
	for t, err := range m.All(ctx, Query{Group: group, States: []tdf.State{tdf.Expired, tdf.Archived}}) {
		if err != nil {
			return nil, fmt.Errorf("counting outcomes: %w", err)
		}
		outcomes[t.Outcome]++
	}
	return outcomes, nil
}
