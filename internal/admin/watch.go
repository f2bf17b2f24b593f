package admin

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tdf-framework/tdf/internal/jsonview"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/task"
)

// A Watch reads the progress of tasks repeatedly, for one group or for all tasks. Only one goroutine may use it.
type Watch struct {
	group  string
	sights []*sight
	seen   []seenDone
	first  seenDone
	moved  task.Time // when a look last found a newly finished task, or no task that could finish
}

// A sight is what a Watch sees of one namespace.
type sight struct {
	store store
	// prefix of obstacles; "" with one namespace
	prefix string
	groups []string
	query  task.Query // selects tasks whose rounds show how long a run takes
	runs   []task.Seconds
	open   openSample
	share  float64   // the fraction of the group's open tasks that may not start yet
	sought task.Time // when runs and share were read
}

type seenDone struct {
	at   task.Time
	done int64
}

// A Status is the progress of tasks at one time.
type Status struct {
	At     time.Time
	Group  string // "" means all tasks
	Counts task.Counts

	Closed   bool // no task can be opened in the group
	Complete bool // the group is closed, and all of its tasks are finished

	Rate      float64 // tasks that finished per second, over the last half minute
	RateSoFar float64 // tasks that finished per second, since the first look

	// Later is the number of open tasks that may not start yet. For a group with more than 400 open tasks, Later is an
	// estimate from a sample.
	Later int64

	Server  time.Time // when a server was seen last; zero if never
	Workers int       // number of live workers
	Drained int       // number of live workers that do not claim tasks
	Slots   int       // slots of the workers that claim tasks
	Busy    int       // slots in which a task runs, whatever its group

	// Pauses lists the programs of open tasks that are held. Look reads the programs of only a sample of the open tasks.
	Pauses []Pause

	// Obstacles says why unfinished tasks do not finish: no server is alive, or no worker claims tasks. For open tasks,
	// it also says that no live worker may claim them, that they are paused, that their limit is 0, that they wait for
	// a group that is not closed, or that Redis is full. And it says that the first rounds of the group all failed in
	// the same way. Look searches a sample of the open tasks every 10 s.
	Obstacles []Fact

	Estimate Estimate
}

// Done returns the number of finished tasks.
func (s *Status) Done() int64 { return s.Counts.Finished() }

// MarshalJSON writes the JSON of tdf watch (docs/tdf.md), with times in seconds.
func (s Status) MarshalJSON() ([]byte, error) {
	o := jsonview.Object{}
	o.Set("time", unix(s.At))
	if s.Group != "" {
		o.Set("campaign", s.Group)
	}
	if s.Group != "" {
		o.Set("closed", s.Closed)
		o.Set("complete", s.Complete)
	}
	o.Set("counts", allStates(s.Counts))
	o.Set("done", s.Done())
	o.Set("total", s.Counts.Total())
	o.Set("rate", s.Rate)
	o.Set("rate_so_far", s.RateSoFar)
	o.Set("workers", s.Workers)
	o.Set("slots", s.Slots)
	o.Set("busy", s.Busy)
	o.Set("server_seen", unix(s.Server))
	o.Set("later", s.Later)
	if len(s.Pauses) > 0 {
		var pauses []jsonview.Object
		for _, p := range s.Pauses {
			pauses = append(pauses, jsonview.Of(p))
		}
		o.Set("pauses", pauses)
	}
	if len(s.Obstacles) > 0 {
		o.Set("obstacles", s.Obstacles)
	}
	if s.Estimate.Unknown != "" {
		o.Set("eta", nil)
		o.Set("eta_unknown", s.Estimate.Unknown)
	} else {
		o.Set("eta", jsonview.Object{
			{Name: "low", Value: s.Estimate.Low.Seconds()},
			{Name: "high", Value: s.Estimate.High.Seconds()},
		})
	}
	return o.MarshalJSON()
}

func unix(t time.Time) float64 { return float64(task.At(t)) }

// Watch returns a Watch for a group. An empty group means all tasks.
func (a *Admin) Watch(group string) *Watch {
	return &Watch{group: group, sights: []*sight{a.sight(group)}}
}

func (a *Admin) sight(group string) *sight {
	return &sight{store: storeOf(a.redis()), groups: groupsOf(group), query: ranToTheEnd(group)}
}

// ranToTheEnd returns a query for tasks whose rounds show how long a run takes.
func ranToTheEnd(group string) task.Query {
	return task.Query{Group: group, States: []task.State{task.Succeeded, task.Failed, task.TimedOut, task.Archived}}
}

const (
	watchWindow  = task.Seconds(30)
	sampledRuns  = 200
	sampledOpen  = 200              // the number of tasks with the lowest ids, and also of tasks with the highest ids
	samplePauses = task.Seconds(10) // the time between two reads of the samples
	// a task that starts within this time counts as waiting, because it may have been opened just now
	soon = task.Seconds(1)
)

// A look is the data that one call of Look reads.
type look struct {
	at     task.Time
	closed bool // no task can be opened in the group
	counts task.Counts
	later  int64 // open tasks that may not start yet
	fleet  fleet
	census census
	pauses []Pause
	runs   []task.Seconds

	unsettled bool
	obstacles []Fact
}

// Look reads the progress. The number of tasks hardly affects how long this takes.
func (w *Watch) Look(ctx context.Context) (Status, error) {
	var all []look
	for _, s := range w.sights {
		l, err := s.look(ctx)
		if err != nil {
			return Status{}, fmt.Errorf("watch tasks: %w", err)
		}
		all = append(all, l)
	}
	return w.status(together(all)), nil
}

// together adds up what a Watch sees of several namespaces.
func together(all []look) *look {
	sum := all[0]
	for i := range all[1:] {
		l := &all[i+1]
		sum.at, sum.fleet.server = max(sum.at, l.at), min(sum.fleet.server, l.fleet.server)
		if l.counts.Total() > 0 {
			sum.closed = l.closed && (sum.closed || sum.counts.Total() == 0)
		}
		sum.counts = maps.Clone(sum.counts)
		addCounts(sum.counts, l.counts)
		sum.later += l.later
		sum.census.add(&l.census)
		sum.runs = append(slices.Clip(sum.runs), l.runs...)
		sum.unsettled = sum.unsettled || l.unsettled
		sum.pauses = append(slices.Clip(sum.pauses), l.pauses...)
		for _, f := range l.obstacles {
			if !slices.ContainsFunc(sum.obstacles, func(o Fact) bool { return o.Text == f.Text }) {
				sum.obstacles = append(slices.Clip(sum.obstacles), f)
			}
		}
	}
	sortPauses(sum.pauses)
	return &sum
}

func (w *sight) look(ctx context.Context) (l look, err error) {
	if l, err = w.read(ctx); err != nil {
		return l, err
	}
	if len(w.runs) < leastRuns || l.at.Sub(w.sought) >= samplePauses {
		if err := w.sample(ctx, &l); err != nil {
			return l, err
		}
	}
	open := l.counts[task.Open]
	l.later = min(l.later, open)
	if w.query.Group != "" {
		l.later = min(l.later, int64(math.Round(w.share*float64(open))))
	}
	l.runs, l.unsettled, l.census = w.runs, l.isUnsettled(), l.fleet.count()
	return l, w.sampleOpen(ctx, &l)
}

// sampleOpen looks for obstacles, for those of the open tasks from time to time. It removes the pauses of programs that
// no watched open task uses.
func (w *sight) sampleOpen(ctx context.Context, l *look) (err error) {
	if l.counts.Unfinished() == 0 {
		return nil
	}
	for _, find := range []func() (Fact, bool){l.fleet.noServer, l.fleet.noWorker} {
		if fact, is := find(); is {
			l.obstacles = append(l.obstacles, fact)
		}
	}
	defer func() {
		for i := range l.obstacles {
			l.obstacles[i].Text = w.prefix + l.obstacles[i].Text
		}
	}()
	if l.counts[task.Open] == 0 {
		return nil
	}
	if w.open.programs == nil || l.at.Sub(w.open.at) >= samplePauses {
		most := sampledFew
		if len(l.pauses) > 0 {
			most = sampledOpen
		}
		if w.open, err = readOpen(ctx, w.store, w.query.Group, most); err != nil {
			return err
		}
		if err := w.open.find(ctx, w.store, l, w.query.Group); err != nil {
			return err
		}
		w.open.at = l.at
	}
	l.pauses = slices.DeleteFunc(l.pauses, func(p Pause) bool { return !w.open.programs[p.Program] })
	l.obstacles = append(l.obstacles, w.open.obstacles...)
	return nil
}

func (w *sight) read(ctx context.Context) (l look, err error) {
	if l.at, err = w.store.Now(ctx); err != nil {
		return l, err
	}
	for _, group := range w.groups {
		mark, err := w.store.GroupMark(ctx, group) // before the counts: see manager.GroupStatus
		if err != nil {
			return l, err
		}
		l.closed = mark.Mark != task.GroupOpen
	}
	counts, err := w.store.Counts(ctx, w.groups...)
	if err != nil {
		return l, err
	}
	l.counts = counts
	// counts tasks of all groups
	if l.later, err = w.store.Between(ctx, l.at.Add(soon), task.Never, task.Open); err != nil {
		return l, err
	}
	if len(w.groups) > 0 {
		if counts, err = w.store.Counts(ctx); err != nil {
			return l, err
		}
	}
	if l.fleet, err = readFleet(ctx, w.store, l.at, counts[task.Running]); err != nil {
		return l, err
	}
	if l.counts[task.Open] > 0 {
		l.pauses = l.fleet.pauses()
	}
	return l, nil
}

// sample reads the run times and the start times of a few tasks, to estimate the times of all tasks.
func (w *sight) sample(ctx context.Context, l *look) (err error) {
	if w.runs, err = lastRuns(ctx, w.store, w.query); err != nil {
		return err
	}
	if w.query.Group != "" && l.later > 0 {
		w.share, err = shareOfLater(ctx, w.store, w.query.Group, l.at.Add(soon))
	}
	w.sought = l.at
	return err
}

// status derives the Status from this look and from earlier ones.
func (w *Watch) status(l *look) Status {
	c := &l.census
	s := Status{
		At: l.at.Std(), Group: w.group, Counts: l.counts, Later: l.later, Pauses: l.pauses, Obstacles: l.obstacles,
		Closed: l.closed, Complete: l.closed && l.counts.Unfinished() == 0,
		Server: l.fleet.server.Std(), Workers: c.alive, Drained: c.alive - c.claiming, Slots: c.slots, Busy: c.busy,
	}
	left := work{
		waiting: s.Counts[task.Open] - s.Later, running: s.Counts[task.Running], later: s.Later, slots: s.Slots,
		runs: l.runs,
	}
	w.note(l.at, s.Done(), w.paused(l), &left)
	if left.period > 0 {
		s.Rate = float64(left.done) / float64(left.period)
	}
	if so := l.at.Sub(w.first.at); so > 0 {
		s.RateSoFar = float64(max(0, s.Done()-w.first.done)) / float64(so)
	}
	s.Estimate = w.estimate(&left, l)
	return s
}

// estimate returns the Estimate for the remaining work. It is unknown if no server settles tasks, or if a
// program of the tasks is held, or if an obstacle stops tasks until a user removes it.
func (w *Watch) estimate(left *work, l *look) Estimate {
	if l.unsettled {
		return Estimate{Unknown: "no server is alive"}
	}
	if len(l.pauses) > 0 {
		return Estimate{Unknown: l.pauses[0].Program + " cannot be started"}
	}
	if w.paused(l) {
		return Estimate{Unknown: "the tasks are paused"}
	}
	if slices.ContainsFunc(l.obstacles, blocks) {
		return Estimate{Unknown: "some open tasks cannot start"}
	}
	low, high, unknown := left.estimate()
	return Estimate{Low: low.Std(), High: high.Std(), Unknown: unknown}
}

// blocks reports whether tasks cannot start because of an obstacle.
func blocks(f Fact) bool {
	return slices.Contains([]FactCode{FactPaused, FactLimitZero, FactUnserved, FactCampaignOpen, FactClaimsWait},
		f.Code)
}

// paused reports whether all watched tasks are paused.
func (w *Watch) paused(l *look) bool {
	all := []string{task.Everything.Text()}
	if w.group != "" {
		all = append(all, task.Pausable{Group: w.group}.Text())
	}
	return slices.ContainsFunc(l.obstacles, func(f Fact) bool {
		return f.Code == FactPaused && slices.Contains(all, f.About)
	})
}

// isUnsettled reports whether tasks cannot finish because no server is alive. While executed tasks wait, a server
// counts as alive only if its last heartbeat is at most 5 s old.
func (l *look) isUnsettled() bool {
	const lively = task.Seconds(5)
	_, missing := l.fleet.noServer()
	return l.counts.Unfinished() > 0 && missing || l.counts[task.Executed] > 0 && l.at.Sub(l.fleet.server) > lively
}

// note records how many tasks have finished, and sets the fields done, period and still of the remaining work. If fewer
// tasks have finished than before, because tasks were reopened or removed, it sets the field done to 0. A pause does
// not count as time in which tasks could have finished.
func (w *Watch) note(now task.Time, done int64, paused bool, left *work) {
	if len(w.seen) == 0 {
		w.first, w.moved = seenDone{now, done}, now
	} else if idle := left.waiting+left.running == 0 || left.slots == 0 || paused; idle ||
		done > w.seen[len(w.seen)-1].done {
		w.moved = now
	}
	if paused && left.running == 0 {
		w.seen = w.seen[:0]
	}
	w.seen = append(w.seen, seenDone{now, done})
	for len(w.seen) > 2 && now.Sub(w.seen[1].at) >= watchWindow {
		w.seen = w.seen[1:]
	}
	left.done, left.period, left.still = max(0, done-w.seen[0].done), now.Sub(w.seen[0].at), now.Sub(w.moved)
}

// shareOfLater estimates which fraction of a group's open tasks starts later than limit. It reads only the tasks with
// the lowest and the highest ids.
func shareOfLater(ctx context.Context, s store, group string, limit task.Time) (float64, error) {
	later, looked := 0, 0
	for _, order := range []task.Order{task.NewestFirst, task.OldestFirst} {
		page, err := listing.Find(ctx, s, task.Query{Group: group, States: []task.State{task.Open}, Order: order}, "",
			sampledOpen)
		if err != nil {
			return 0, err
		}
		for _, t := range page.Tasks {
			if max(t.StartAfter, t.Ready) > limit {
				later++
			}
		}
		looked += len(page.Tasks)
	}
	return float64(later) / float64(max(1, looked)), nil
}

// lastRuns returns the run times of the most recently finished tasks.
func lastRuns(ctx context.Context, s store, q task.Query) ([]task.Seconds, error) {
	page, err := listing.Find(ctx, s, q, "", sampledRuns)
	var runs []task.Seconds
	for _, t := range page.Tasks {
		if took, ran := runTime(t.Current()); ran {
			runs = append(runs, took)
		}
	}
	return runs, err
}

// runTime returns how long a round ran, as its worker reported. Without a report, runTime uses the times of the round's
// states.
func runTime(r *task.Round) (took task.Seconds, ran bool) {
	end := max(r.Entered[task.Executed], r.TimedOutAt)
	switch {
	case r.Seconds > 0:
		return r.Seconds, true
	case end == 0 || r.Entered[task.Running] == 0:
		return 0, false
	}
	return max(0, end.Sub(max(r.Entered[task.Running], r.Started))), true
}
