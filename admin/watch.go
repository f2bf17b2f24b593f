package admin

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/friend"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/manager"
)

// A Watch looks at the tasks of a group, or at all tasks, again and again. It may be used by one goroutine.
type Watch struct {
	admin  *Admin
	store  store // nil: before the first look
	groups []string
	query  listing.Query // of the tasks that have ended
	seen   []seenDone
	first  seenDone
	moved  tdf.Time // when a task was seen to end last, or nothing was there that could have
	runs   []tdf.Seconds
	open   programsSample
	share  float64  // of the group's open tasks that start later
	sought tdf.Time // when runs and share were read
}

type seenDone struct {
	at   tdf.Time
	done int64
}

// A Status is how things stand at a time.
type Status struct {
	At     tdf.Time
	Counts manager.Counts

	Rate      float64 // tasks done in a second, over the last half minute
	RateSoFar float64 // likewise, since the first look

	Later int64 // open tasks that start later; of a group with more than 400 open ones, as far as a sample tells

	Server  tdf.Time // when a server was seen last; 0: never
	Workers int      // that live
	Drained int      // of these, those that claim nothing
	Slots   int      // how many programs they can run at once, as far as they claim any
	Busy    int      // how many of these run a task, of any group

	Pauses []Pause // of programs that open tasks have, as far as a sample tells; those of most workers first

	Estimate Estimate
}

// Done is how many tasks wait for nothing but their manager, or not even that.
func (s *Status) Done() int64 { return s.Counts.Total() - s.Counts.Unfinished() }

// ServerMissing says whether no server was seen for so long that nothing will be judged.
func (s *Status) ServerMissing() bool { return s.At.Sub(s.Server) > friend.ServerPatience }

// Watch returns one for a group; "" is for all tasks.
func (a *Admin) Watch(group string) *Watch {
	return &Watch{admin: a, groups: groupsOf(group), query: ranToTheEnd(group)}
}

// ranToTheEnd selects tasks whose rounds tell how long a run takes.
func ranToTheEnd(group string) listing.Query {
	return listing.Query{Group: group, States: []tdf.State{tdf.Succeeded, tdf.Failed, tdf.TimedOut, tdf.Archived}}
}

const (
	watchWindow  = tdf.Seconds(30)
	sampledRuns  = 200
	sampledOpen  = 200             // from each end
	samplePauses = tdf.Seconds(10) // between two readings of the samples
	soon         = tdf.Seconds(1)  // what starts by then counts as waiting: it may have been opened just now
)

// Look asks Redis how things stand. It takes the same time however many tasks there are.
func (w *Watch) Look(ctx context.Context) (Status, error) {
	if w.store == nil {
		redis, err := w.admin.redis(ctx)
		if err != nil {
			return Status{}, fmt.Errorf("watching: %w", err)
		}
		w.store = redis
	}
	s, err := w.read(ctx)
	if err != nil {
		return s, fmt.Errorf("watching: %w", err)
	}
	if len(w.runs) < leastRuns || s.At.Sub(w.sought) >= samplePauses {
		if err := w.sample(ctx, &s); err != nil {
			return s, fmt.Errorf("watching: %w", err)
		}
	}
	if err := w.keepOwnPauses(ctx, &s); err != nil {
		return s, fmt.Errorf("watching: %w", err)
	}
	w.judge(&s)
	return s, nil
}

// sample reads what is looked at in a few tasks only.
func (w *Watch) sample(ctx context.Context, s *Status) (err error) {
	if w.runs, err = lastRuns(ctx, w.store, w.query); err != nil {
		return err
	}
	if w.query.Group != "" && s.Later > 0 {
		w.share, err = shareOfLater(ctx, w.store, w.query.Group, s.At.Add(soon))
	}
	w.sought = s.At
	return err
}

// judge says how it goes, by what was read now and before.
func (w *Watch) judge(s *Status) {
	open := s.Counts[tdf.Open]
	s.Later = min(s.Later, open)
	if w.query.Group != "" {
		s.Later = min(s.Later, int64(math.Round(w.share*float64(open))))
	}
	work := Work{Waiting: open - s.Later, Running: s.Counts[tdf.Running], Later: s.Later, Slots: s.Slots, Runs: w.runs}
	w.note(s.At, s.Done(), &work)
	if work.Over > 0 {
		s.Rate = float64(work.Done) / float64(work.Over)
	}
	if so := s.At.Sub(w.first.at); so > 0 {
		s.RateSoFar = float64(max(0, s.Done()-w.first.done)) / float64(so)
	}
	if s.Estimate = work.Estimate(); s.unjudged() {
		s.Estimate = Estimate{Unknown: "no server judges what has run"}
	} else if i := slices.IndexFunc(s.Pauses, func(p Pause) bool { return p.All() }); i >= 0 {
		s.Estimate = Estimate{Unknown: "all workers pause " + s.Pauses[i].Program}
	}
}

// unjudged says whether what runs will not be done: there is no server, or what has run waits already for one that has been
// silent for longer than a living one is.
func (s *Status) unjudged() bool {
	const lively = tdf.Seconds(5)
	return s.Counts.Unfinished() > 0 && s.ServerMissing() || s.Counts[tdf.Executed] > 0 && s.At.Sub(s.Server) > lively
}

func (w *Watch) read(ctx context.Context) (s Status, err error) {
	if s.At, err = w.store.Now(ctx); err != nil {
		return s, err
	}
	if s.Counts, err = w.store.Counts(ctx, w.groups...); err != nil {
		return s, err
	}
	if s.Server, err = w.store.LastServerHeartbeat(ctx); err != nil {
		return s, err
	}
	if s.Later, err = w.store.Between(ctx, s.At.Add(soon), tdf.Never, tdf.Open); err != nil { // of all groups
		return s, err
	}
	all := s.Counts
	if len(w.groups) > 0 {
		if all, err = w.store.Counts(ctx); err != nil {
			return s, err
		}
	}
	workers, err := workersOf(ctx, w.store)
	s.attend(workers, int(all[tdf.Running]))
	if s.Counts[tdf.Open] > 0 {
		s.Pauses = pausesOf(workers)
	}
	return s, err
}

// attend counts workers and slots. What runs elsewhere, as on workers that drain or are silent, keeps none of the slots busy.
func (s *Status) attend(workers []Worker, running int) {
	for i := range workers {
		w := &workers[i]
		if w.Alive {
			s.Workers++
		}
		switch {
		case w.Alive && w.claims():
			s.Slots += w.Slots
			continue
		case w.Alive:
			s.Drained++
		}
		running -= len(w.Runs)
	}
	s.Busy = min(max(0, running), s.Slots)
}

// claims: it takes tasks, as long as it lives.
func (w *Worker) claims() bool { return w.Drained == "" && w.State != "draining" && w.State != "gone" }

// note says how many tasks have ended in how many seconds, lately, and since when none has. Tasks that are opened again,
// or removed, are as if they had not ended.
func (w *Watch) note(now tdf.Time, done int64, work *Work) {
	if len(w.seen) == 0 {
		w.first, w.moved = seenDone{now, done}, now
	} else if idle := work.Waiting+work.Running == 0 || work.Slots == 0; idle || done > w.seen[len(w.seen)-1].done {
		w.moved = now
	}
	w.seen = append(w.seen, seenDone{now, done})
	for len(w.seen) > 2 && now.Sub(w.seen[1].at) >= watchWindow {
		w.seen = w.seen[1:]
	}
	work.Done, work.Over, work.Still = max(0, done-w.seen[0].done), now.Sub(w.seen[0].at), now.Sub(w.moved)
}

// shareOfLater returns what part of a group's open tasks starts later, by those with the lowest and the highest ids.
func shareOfLater(ctx context.Context, s store, group string, than tdf.Time) (float64, error) {
	later, looked := 0, 0
	for _, oldest := range []bool{false, true} {
		page, err := listing.Find(ctx, s, listing.Query{Group: group, States: []tdf.State{tdf.Open}, OldestFirst: oldest}, "", sampledOpen)
		if err != nil {
			return 0, err
		}
		for _, t := range page.Tasks {
			if max(t.StartAfter, t.Ready) > than {
				later++
			}
		}
		looked += len(page.Tasks)
	}
	return float64(later) / float64(max(1, looked)), nil
}

// lastRuns returns how long the last tasks ran that ended.
func lastRuns(ctx context.Context, s store, q listing.Query) ([]tdf.Seconds, error) {
	page, err := listing.Find(ctx, s, q, "", sampledRuns)
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
	end := max(r.Entered[tdf.Executed], r.TimedOutAt)
	switch {
	case r.Seconds > 0:
		return r.Seconds, true
	case end == 0 || r.Entered[tdf.Running] == 0:
		return 0, false
	}
	return max(0, end.Sub(max(r.Entered[tdf.Running], r.Started))), true
}
