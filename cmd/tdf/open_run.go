package main

import (
	"context"
	"errors"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/sweep"
)

// A batch is opened by one call of Open. A shorter one is opened when no row has come for a while.
const (
	openAtOnce = 500
	openBytes  = 4 << 20
	openPause  = time.Second
)

// carryOut opens the tasks, and says which those are, however it ends.
func (p *plan) carryOut(ctx context.Context) error {
	if p.found != nil && p.found.admitted == 0 {
		p.a.say("campaign %s has all %s already: nothing was opened", p.base.Group, counted(p.found.known, "point"))
		return nil
	}
	if p.packed != nil {
		if err := p.a.store(ctx, p.m, *p.packed); err != nil {
			return err
		}
	}
	r := &openRun{plan: p, walk: &walk{points: p.points, second: p.found != nil}, bar: p.a.bar(p.total(), "opening")}
	err := r.open(ctx)
	r.bar.Clear()
	if unprinted := r.opened.print(p.a.stdout); err == nil {
		err = unprinted
	}
	return r.tell(ctx, err)
}

// total is how many tasks there will be; -1: nobody knows.
func (p *plan) total() int64 {
	if p.found == nil {
		return -1
	}
	return p.found.admitted
}

// An openRun is the opening of the tasks under way.
type openRun struct {
	*plan
	walk   *walk
	bar    *progressbar.ProgressBar
	batch  []tdf.Properties
	bytes  int
	opened idRanges
	unsure int // tasks of which nobody knows whether they were opened
}

func (r *openRun) open(ctx context.Context) error {
	fed, stop := context.WithCancel(ctx)
	defer stop()
	inEarnest, release := r.a.outlive(ctx)
	defer release()
	return r.takeAll(ctx, inEarnest, r.feed(fed))
}

// takeAll ends with the rows, or with ctx. Then what is under way is still opened, inEarnest.
func (r *openRun) takeAll(ctx, inEarnest context.Context, rows <-chan feed) error {
	pause := time.NewTicker(openPause)
	defer pause.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-pause.C:
			err = r.flush(inEarnest)
		case f, more := <-rows:
			switch {
			case !more && ctx.Err() != nil: // which is why there are no more
				return context.Cause(ctx)
			case !more:
				return r.flush(inEarnest)
			}
			err = r.take(inEarnest, f)
		}
		if err != nil {
			return err
		}
	}
}

// A feed is a task that may be opened, or what ended them.
type feed struct {
	candidate
	err error
}

// feed reads the rows ahead, while tasks are opened.
func (r *openRun) feed(ctx context.Context) <-chan feed {
	rows := make(chan feed, openAtOnce)
	go func() {
		defer close(rows)
		for c, err := range r.sweep.candidates(r.base) {
			select {
			case rows <- feed{c, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return rows
}

// take opens those before a row that is wrong, too.
func (r *openRun) take(ctx context.Context, f feed) error {
	if f.err != nil {
		return errors.Join(f.err, r.flush(ctx))
	}
	if !r.admits(f.point) {
		return nil
	}
	r.batch = append(r.batch, f.definition)
	r.bytes += len(f.definition.Input) + len(f.definition.Meta)
	if len(r.batch) < openAtOnce && r.bytes < openBytes {
		return nil
	}
	return r.flush(ctx)
}

// admits need not look at points again where the campaign has none.
func (r *openRun) admits(point sweep.Point) bool {
	return r.walk.second && !r.extend || r.walk.admits(point)
}

func (r *openRun) flush(ctx context.Context) error {
	if len(r.batch) == 0 {
		return nil
	}
	open := r.m.Open
	if r.fresh && len(r.opened) == 0 {
		open = r.m.OpenGroup
	}
	ids, err := r.m.open(ctx, open, r.batch...)
	if errors.Is(err, manager.ErrGroupTaken) {
		return r.taken("tasks that somebody else opened just now")
	}
	r.opened.add(ids)
	r.bar.Add(len(ids))
	if err != nil && ctx.Err() != nil {
		r.unsure = len(r.batch) - len(ids)
	}
	r.batch, r.bytes = r.batch[:0], 0
	return err
}

// tell says what was opened, and returns what the command ends with.
func (r *openRun) tell(ctx context.Context, err error) error {
	n := r.opened.count()
	switch {
	case err == nil:
		r.tellDone(n)
		return nil
	case ctx.Err() != nil:
		r.a.say("interrupted: %s", r.wereOpened(n))
		return context.Cause(ctx)
	case n == 0 && errors.As(err, new(*sweep.RowError)):
		return usage("%v; nothing was opened", err)
	}
	r.a.say("%s", r.wereOpened(n))
	return err
}

func (r *openRun) tellDone(n int64) {
	w := r.walk
	if r.found != nil {
		w = r.found
	}
	if w.known > 0 {
		r.a.say("%s were there already", counted(w.known, "point"))
	}
	tellDouble(r.a, w.double)
	name := sweep.Quote(r.base.Group)
	switch {
	case r.base.Group != "":
		r.a.say("opened %s in campaign %s: tdf watch %s", counted(n, "task"), name, name)
	default:
		r.a.say("opened %s: tdf show %d", counted(n, "task"), r.opened[0].first)
	}
}

func tellDouble(a *app, double int64) {
	if double > 0 {
		a.say("rows that repeat an earlier one, each a task of its own: %d", double)
	}
}

// wereOpened tells how far it came, and how to go on.
func (r *openRun) wereOpened(n int64) string {
	text := "nothing was opened"
	if n > 0 {
		text = counted(n, "task") + " opened"
	}
	if r.unsure > 0 {
		text += ", and " + counted(int64(r.unsure), "task") + " more may have been: Redis did not answer"
	}
	if r.sweep.rows != nil && (n > 0 || r.unsure > 0) {
		text += "; the same with --extend --campaign " + sweep.Quote(r.base.Group) + " opens the rest"
	}
	return text
}
