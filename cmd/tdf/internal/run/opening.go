package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/sweep"
)

// A call opens at most openAtOnce tasks. If no input comes for openPause, it opens what it has. It opens no more tasks
// while many are unfinished, so that an endless input needs no endless memory: ahead of the slots of this machine, or
// aheadOfAll. The embedded Redis sorts its lists at each call, so short ones are faster.
const (
	openAtOnce = 100
	openPause  = 5 * time.Millisecond
	ahead      = 200
	aheadOfAll = 20_000
)

// atOnce returns how many tasks the call opens at most at once. Blocks of stdin are files, and --delay, --load and
// --memfree look at each start.
func (c *campaign) atOnce() int {
	if c.pipe || c.gated() {
		return 1
	}
	return openAtOnce
}

// open opens a task for each input that --resume does not leave out.
func (c *campaign) open(ctx context.Context) error {
	reading, end := context.WithCancel(ctx)
	defer end()
	opening, release := c.a.Outlive(ctx) // an interruption does not leave unknown tasks behind
	defer release()
	tasks := c.feed(reading)
	for {
		batch, err := next(ctx, tasks, c.atOnce())
		if err != nil {
			return err
		}
		if len(batch) == 0 {
			return c.endOpening(ctx)
		}
		halted, err := c.awaitRoom(ctx)
		if err != nil {
			return err
		}
		if halted {
			end()
			continue
		}
		halted, err = c.openBatch(opening, batch)
		if err != nil {
			return err
		}
		if halted { // the tasks that were cancelled did not include these
			c.cancel(ctx, task.Open)
		}
	}
}

// openBatch opens tasks. It reports whether too many tasks have failed.
func (c *campaign) openBatch(ctx context.Context, batch []fed) (halted bool, err error) {
	c.opening <- struct{}{}
	defer func() { <-c.opening }()
	all := make([]task.Properties, len(batch))
	for i := range batch {
		all[i] = batch[i].task
	}
	tasks, err := cli.OpenAs(ctx, c.m.Open, all...)
	for errors.Is(err, task.ErrGroupClosed) && len(tasks) == 0 { // batches are atomic
		err = c.m.ExtendGroup(ctx, c.base.Group)
		if err == nil {
			tasks, err = cli.OpenAs(ctx, c.m.Open, all...)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, t := range tasks {
		if c.detach {
			c.own.opened++ // it waits for none
			_, failed := fmt.Fprintln(c.a.Stdout, t.ID)
			if failed != nil && err == nil {
				err = fmt.Errorf("print the id: %w", failed)
			}
		} else {
			c.own.add(t.ID, batch[i].of)
		}
	}
	if err != nil && ctx.Err() != nil {
		c.unsure = len(batch) - len(tasks)
	}
	return c.halted, err
}

// endOpening closes the campaign, so that it is complete when all of its tasks have finished.
func (c *campaign) endOpening(ctx context.Context) error {
	c.mu.Lock()
	closes := c.own.opened > 0 && !c.here.temporary
	c.mu.Unlock()
	if closes {
		err := c.m.CloseGroup(ctx, c.base.Group)
		if err != nil && !errors.Is(err, task.ErrGroupEmpty) {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.allOpened = true // last, because the call ends when all tasks are opened and have finished
	return nil
}

// A fed is the task of an input, or the error that ended the inputs.
type fed struct {
	task task.Properties
	of   item
	err  error
}

// feed makes tasks from the inputs in the background.
func (c *campaign) feed(ctx context.Context) <-chan fed {
	tasks := make(chan fed, c.atOnce()-1)
	go func() {
		defer close(tasks)
		send := func(f fed) bool {
			select {
			case tasks <- f:
				return true
			case <-ctx.Done():
				return false
			}
		}
		number := int64(0)
		for row, err := range c.in.rows {
			if err != nil {
				send(fed{err: err})
				return
			}
			number++
			next, skip := c.taskOf(ctx, &row, number)
			if skip {
				continue
			}
			if !send(next) || next.err != nil {
				return
			}
		}
	}()
	return tasks
}

// taskOf returns the task of an input. skip means that --resume leaves it out.
func (c *campaign) taskOf(ctx context.Context, row *sweep.Row, number int64) (f fed, skip bool) {
	line, err := c.template.input(row, number)
	if err != nil {
		return fed{err: err}, false
	}
	if c.log.hasSucceeded(line.shown) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.skipped++
		return f, true
	}
	f.task, f.of = c.base, item{number: number}
	f.task.Input = line.text
	if line.shown != line.text {
		f.of.shown = line.shown
	}
	if c.tag || c.files != nil {
		f.of.params = row.Params
	}
	if c.template.wrap.stdin != nil {
		f.of.stdin = c.template.wrap.stdin(number)
	}
	err = c.place(ctx, &f.task, row, number)
	if err != nil {
		return fed{err: err}, false
	}
	if len(row.Params) > 0 {
		lacks := false
		f.task.Meta, lacks = c.template.meta(row)
		c.mu.Lock()
		defer c.mu.Unlock()
		if lacks {
			c.shortened++
		}
	}
	err = f.task.Validate()
	if err != nil {
		f.err = cli.Usagef("input %d: %v", number, err)
	}
	return f, false
}

// place says where the command of an input runs, which files it gets, and which come back.
func (c *campaign) place(ctx context.Context, of *task.Properties, row *sweep.Row, number int64) (err error) {
	if c.template.fetch != nil {
		of.Fetch, err = c.template.fetch.patterns(row, number)
		if err != nil {
			return err
		}
	}
	for _, t := range c.template.sendEach {
		err := c.send(ctx, of, t, row, number)
		if err != nil {
			return err
		}
	}
	if c.template.wd == nil {
		return nil
	}
	dir, err := c.template.wd.one(row, number)
	if err != nil {
		return err
	}
	dir = below(c.dir, dir)
	of.Source = task.SchemeExec + ":" + dir
	if c.elsewhere() {
		return nil
	}
	return makeDir(dir)
}

// next returns the next batch: at least one task, or none at the end.
func next(ctx context.Context, tasks <-chan fed, most int) (batch []fed, err error) {
	var pause <-chan time.Time
	for len(batch) < most {
		select {
		case f, more := <-tasks:
			if !more || f.err != nil {
				return batch, errors.Join(f.err, ctx.Err())
			}
			batch = append(batch, f)
			if len(tasks) == 0 && pause == nil {
				pause = time.After(openPause)
			}
		case <-pause:
			return batch, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return batch, nil
}

// awaitRoom waits until another batch may be opened. It reports whether none may, because of --halt.
func (c *campaign) awaitRoom(ctx context.Context) (halted bool, err error) {
	most := int64(ahead + c.here.slots)
	switch {
	case c.elsewhere():
		most = aheadOfAll
	case c.pipe:
		most = int64(c.here.slots)
	}
	for {
		c.mu.Lock()
		unfinished, halted := int64(len(c.own.pending)), c.halted
		c.mu.Unlock()
		if halted || c.detach {
			return halted, nil
		}
		may := unfinished <= most
		if may && c.gated() {
			may, err = c.mayStart(ctx)
		}
		if may || err != nil {
			return false, err
		}
		err = c.awaitChange(ctx)
		if err != nil {
			return false, err
		}
	}
}

// awaitChange waits until a task finishes, or until it is time to look at this machine again.
func (c *campaign) awaitChange(ctx context.Context) error {
	var again <-chan time.Time
	if c.gated() {
		again = time.After(startPause)
	}
	select {
	case <-c.room:
	case <-again:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
