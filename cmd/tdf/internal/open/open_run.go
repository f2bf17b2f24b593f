package open

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/sweep"
)

// One call of Open opens a batch: at most openAtOnce tasks with at most openBytes bytes. A batch that is not full is
// opened after openPause.
const (
	openAtOnce = 500
	openBytes  = 4 << 20
	openPause  = time.Second
)

// carryOut opens the tasks. It prints the ids of the opened tasks even if it fails or is interrupted.
func (all plans) carryOut(ctx context.Context) error {
	p := all[0]
	if total, known := all.total(); total == 0 {
		p.a.Say("nothing was opened: campaign %s already has all %s", p.base.Group, format.Counted(known, "point"))
		return all.closeCampaign(ctx)
	}
	total, _ := all.total()
	bar := newProgressBar(p.a, total, "opening")
	var runs runs
	for _, p := range all {
		r := &OpenRun{plan: p, walk: &sweep.Walk{Points: p.points, Second: p.found != nil}, bar: bar}
		runs = append(runs, r)
		err := r.open(ctx)
		for r.mustStartOver(err) {
			err = r.startOver(ctx)
		}
		bar.Clear()
		err = cmp.Or(err, r.opened.print(p.a.Stdout, p.m.Namespace()))
		if err != nil {
			return runs.finish(ctx, err)
		}
	}
	return runs.finish(ctx, all.closeCampaign(ctx))
}

// closeCampaign closes a campaign that this command has opened or extended. After an error, the campaign stays open, so
// that a repeated command can open the rest.
func (all plans) closeCampaign(ctx context.Context) error {
	p := all[0]
	if !p.fresh && !p.extend {
		return nil
	}
	if err := p.all.CloseGroup(ctx, p.base.Group); err != nil && !errors.Is(err, task.ErrGroupEmpty) {
		return err
	}
	return nil
}

// total returns the number of tasks to open, or -1 if it is unknown, and the number of points that the campaign has.
func (all plans) total() (open, known int64) {
	for _, p := range all {
		if p.found == nil {
			return -1, 0
		}
		open, known = open+p.found.Admitted, known+p.found.Known
	}
	return open, known
}

// runs opens the tasks of a command, in one namespace after the other.
type runs []*OpenRun

// An OpenRun opens the tasks of a plan.
type OpenRun struct {
	*plan
	walk   *sweep.Walk
	bar    *progressbar.ProgressBar
	batch  []task.Properties
	bytes  int
	opened idRanges
	before int64         // number of tasks that were opened before the run started over
	beside int64         // number of points that another command has opened meanwhile
	unsure int           // number of tasks that were sent to Redis but not confirmed
	holder *manager.Task // the task that holds the unique key; nil if a task was opened
}

// mustStartOver reports whether another command has begun to extend the campaign that this run opens, or has opened the
// one that it extends. If the rows can be read only once, the error remains.
func (r *OpenRun) mustStartOver(err error) bool {
	if r.sweep.Rows == nil || r.sweep.isOnce() || !r.fresh && !r.extend {
		return false
	}
	return managing.MustExtend(err) || r.extend && errors.Is(err, manager.ErrGroupTaken)
}

// startOver opens the tasks as an extension: only the tasks of extensions have keys, so that none is opened twice.
func (r *OpenRun) startOver(ctx context.Context) error {
	r.extend, r.found = true, nil
	if err := r.readPoints(ctx); err != nil {
		return err
	}
	r.walk = &sweep.Walk{Points: r.points}
	r.batch, r.bytes, r.before, r.beside = nil, 0, r.opened.count(), 0
	return r.open(ctx)
}

func (r *OpenRun) open(ctx context.Context) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	opening, release := r.a.Outlive(ctx)
	defer release()
	return r.TakeAll(ctx, opening, r.feed(reading))
}

// TakeAll opens the tasks of the rows, until the last row or until ctx ends. If ctx ends while takeAll opens a batch,
// takeAll finishes the batch. Only the end of the second context, opening, interrupts the batch.
func (r *OpenRun) TakeAll(ctx, opening context.Context, rows <-chan Feed) error {
	pause := time.NewTicker(openPause)
	defer pause.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-pause.C:
			err = r.flush(opening)
		case f, more := <-rows:
			switch {
			case !more && ctx.Err() != nil: // the channel was closed because ctx ended
				return context.Cause(ctx)
			case !more:
				return r.flush(opening)
			}
			err = r.take(opening, f)
		}
		if err != nil {
			return err
		}
	}
}

// A Feed is the candidate of a row, or the error that ended the rows.
type Feed struct {
	sweep.Candidate
	err error
}

// feed reads rows in the background while tasks are opened.
func (r *OpenRun) feed(ctx context.Context) <-chan Feed {
	rows := make(chan Feed, openAtOnce)
	go func() {
		defer close(rows)
		for c, err := range r.candidates() {
			select {
			case rows <- Feed{c, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return rows
}

// take adds a row to the batch. If the batch is full, take opens it. If the row is invalid, take opens the rows before
// it.
func (r *OpenRun) take(ctx context.Context, f Feed) error {
	if f.err != nil {
		return errors.Join(f.err, r.flush(ctx))
	}
	if r.sweep.Rows != nil && !r.isOwn(f.Point) || !r.admits(f.Point) {
		return nil
	}
	if r.extend && r.sweep.Rows != nil {
		r.walk.Key(&f.Task, f.Point)
	}
	r.batch = append(r.batch, f.Task)
	r.bytes += len(f.Task.Input) + len(f.Task.Meta)
	if len(r.batch) < openAtOnce && r.bytes < openBytes {
		return nil
	}
	return r.flush(ctx)
}

// admits reports whether a row needs a new task. If a first walk has checked the rows and --extend is not given,
// every row needs a task.
func (r *OpenRun) admits(point sweep.Point) bool {
	return r.walk.Second && !r.extend || r.walk.Admits(point)
}

// flush opens the batch. Before the first batch, it stores the program. If flush stored it earlier, no task would use
// the program until a row arrives, and programs rm --unused could remove it.
func (r *OpenRun) flush(ctx context.Context) error {
	if len(r.batch) == 0 {
		return nil
	}
	if r.packed != nil && len(r.opened) == 0 {
		r.bar.Clear()
		if err := cli.StoreProgram(ctx, r.m, *r.packed, r.a.Say); err != nil {
			return err
		}
	}
	opened, err := cli.OpenAs(ctx, r.opener(), r.batch...)
	switch {
	case errors.Is(err, task.ErrGroupDecided):
		err = cli.Usagef("extend campaign %s: its completion was already acted on; choose another name", r.base.Group)
	case errors.Is(err, manager.ErrGroupTaken) && !r.extend:
		return r.takenError("was opened by another command just now")
	case errors.Is(err, manager.ErrGroupTaken) && r.sweep.isOnce():
		return cli.Usagef("campaign %s was opened by another command just now; repeat the command", r.base.Group)
	}
	r.isNew = r.isNew && len(opened) == 0
	// not before, because the campaign may belong to another command
	if r.halt > 0 && len(r.opened) == 0 && len(opened) > 0 {
		err = errors.Join(err, r.m.Pauses().Begin(ctx, task.Pausable{Group: r.base.Group, Failures: r.halt}))
	}
	var ids []int64
	for _, t := range opened {
		switch {
		case t.Existing && r.sweep.Rows != nil:
			r.beside++
			continue
		case t.Existing:
			var failed error
			r.holder, failed = r.m.Get(ctx, t.ID)
			err = errors.Join(err, failed)
		}
		ids = append(ids, t.ID)
	}
	r.opened.add(ids)
	r.bar.Add(len(opened))
	if cli.MayHaveChanged(err) {
		r.unsure = len(r.batch) - len(opened)
	}
	r.batch, r.bytes = r.batch[:0], 0
	return err
}

// opener returns the method that opens the next batch.
func (r *OpenRun) opener() func(context.Context, ...manager.Definition) ([]redisstate.Opened, error) {
	in := managing.Of(r.m.Manager)
	switch {
	case r.isNew:
		return in.OpenFirst
	case r.extend:
		return in.OpenExtending
	case r.fresh:
		return in.OpenRest
	}
	return in.Open
}

// count returns the number of opened tasks.
func (all runs) count() (n int64) {
	for _, r := range all {
		n += r.opened.count()
	}
	return n
}

// finish prints the number of opened tasks. It returns the error of the command.
func (all runs) finish(ctx context.Context, err error) error {
	n, a := all.count(), all[0].a
	switch {
	case err == nil:
		all.sayOpened(n)
		all[0].sayPage(ctx)
		return nil
	case ctx.Err() != nil:
		a.Say("interrupted: %s", all.openedText(n))
		return context.Cause(ctx)
	case n == 0 && errors.As(err, new(*sweep.RowError)):
		return cli.Usagef("%v; nothing was opened", err)
	}
	a.Say("%s", all.openedText(n))
	if n > 0 {
		return cli.PartlyError{Err: err}
	}
	return err
}

func (all runs) sayOpened(n int64) {
	var known, repeated int64
	for _, r := range all {
		w := r.walk
		if r.found != nil {
			w = r.found
		}
		known, repeated = known+w.Known+r.beside-r.before, repeated+w.Repeated
	}
	r := all[0]
	if known > 0 {
		r.a.Say("skipped %s that the campaign already has", format.Counted(known, "point"))
	}
	sayRepeated(r.a, repeated)
	name := sweep.Quote(r.base.Group)
	if t := r.holder; t != nil {
		r.a.Say("nothing was opened: task %s already holds the unique key %q, and is %s", r.m.TaskName(t.ID), r.unique,
			format.StateText(t))
		return
	}
	if r.base.Group == "" {
		r.a.Say("opened %s; details: tdf show %s", format.Tasks(n), r.m.TaskName(r.opened[0].first))
		return
	}
	r.a.Say("opened %s in campaign %s; progress: tdf watch %s", format.Tasks(n), name, name)
}

// pageTime is how long the address of a page may take. The tasks are opened, so the command does not wait for Redis any
// more.
const pageTime = time.Second

// sayPage prints the address of the page of the campaign or the task, if a process serves the dashboard.
func (r *OpenRun) sayPage(ctx context.Context) {
	if r.holder != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	var page string
	if r.base.Group != "" {
		page, _ = r.m.CampaignPage(ctx, r.base.Group)
	} else {
		page, _ = r.m.TaskPage(ctx, r.opened[0].first)
	}
	if page != "" {
		r.a.Say("page: %s", page)
	}
}

// sayRepeated prints the number of rows that repeat an earlier row. Each of these rows gets a task.
func sayRepeated(a *cli.App, rows int64) {
	if rows > 0 {
		a.Say("repeated rows: %d; each gets a task", rows)
	}
}

// openedText returns a text with the number of tasks that were opened before an error, and with the command that opens
// the rest.
func (all runs) openedText(n int64) string {
	text, r := "nothing was opened", all[len(all)-1] // the one that failed
	if n > 0 {
		text = "opened " + format.Tasks(n)
	}
	switch {
	case r.unsure > 0 && n == 0:
		text = "perhaps opened " + format.Tasks(r.unsure) + ": Redis did not answer; see tdf ls"
	case r.unsure > 0:
		text += ", and perhaps " + format.Tasks(r.unsure) + " more: Redis did not answer; see tdf ls"
	}
	if r.sweep.Rows != nil && (n > 0 || r.unsure > 0) {
		text += "; repeat with --extend --campaign " + sweep.Quote(r.base.Group) + " to open the rest"
	}
	return text
}
