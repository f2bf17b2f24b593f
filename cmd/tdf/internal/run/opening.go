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

// open opens a task for each input that --resume does not leave out.
func (c *campaign) open(ctx context.Context) error {
	reading, end := context.WithCancel(ctx)
	defer end()
	opening, release := c.a.Outlive(ctx) // an interruption does not leave unknown tasks behind
	defer release()
	extended := !c.resume || c.here.temporary // an earlier call has closed the campaign if it had opened all tasks
	tasks := c.feed(reading)
	for {
		batch, err := next(ctx, tasks)
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
		if !extended {
			err = c.m.ExtendGroup(ctx, c.base.Group)
			if err != nil {
				return err
			}
			extended = true
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
func (c *campaign) openBatch(ctx context.Context, batch []task.Properties) (halted bool, err error) {
	c.opening <- struct{}{}
	defer func() { <-c.opening }()
	tasks, err := c.m.OpenAs(ctx, c.m.Open, batch...)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range tasks {
		if c.detach {
			c.own.opened++ // it waits for none
		} else {
			c.own.add(t.ID)
		}
	}
	if err != nil && ctx.Err() != nil {
		c.unsure = len(batch) - len(tasks)
	}
	if errors.Is(err, task.ErrGroupClosed) {
		err = fmt.Errorf("campaign %s is closed: name another one, or run the rest of its commands with "+
			"--joblog and --resume",
			c.base.Group)
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
	err  error
}

// feed makes tasks from the inputs in the background.
func (c *campaign) feed(ctx context.Context) <-chan fed {
	tasks := make(chan fed, openAtOnce)
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
			one, skip, err := c.taskOf(&row, number)
			if skip {
				continue
			}
			if !send(fed{one, err}) || err != nil {
				return
			}
		}
	}()
	return tasks
}

// taskOf returns the task of an input. skip means that --resume leaves it out.
func (c *campaign) taskOf(row *sweep.Row, number int64) (one task.Properties, skip bool, err error) {
	one = c.base
	one.Input, err = c.template.input(row, number)
	if err != nil {
		return one, false, err
	}
	if c.template.fetch != nil {
		one.Fetch, err = c.template.fetch.patterns(row, number)
		if err != nil {
			return one, false, err
		}
	}
	skip = c.log.hasSucceeded(one.Input)
	lacks := false
	if len(row.Params) > 0 {
		one.Meta, lacks = c.template.meta(row)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case skip:
		c.skipped++
		return one, true, nil
	case lacks:
		c.shortened++
	}
	err = one.Validate()
	if err != nil {
		return one, false, cli.Usagef("input %d: %v", number, err)
	}
	return one, false, nil
}

// next returns the next batch: at least one task, or none at the end.
func next(ctx context.Context, tasks <-chan fed) (batch []task.Properties, err error) {
	var pause <-chan time.Time
	for len(batch) < openAtOnce {
		select {
		case f, more := <-tasks:
			if !more || f.err != nil {
				return batch, errors.Join(f.err, ctx.Err())
			}
			batch = append(batch, f.task)
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

// awaitRoom waits until another batch may be opened. It reports whether none may, because too many tasks have failed.
func (c *campaign) awaitRoom(ctx context.Context) (halted bool, err error) {
	most := int64(ahead + c.here.slots)
	if c.elsewhere() {
		most = aheadOfAll
	}
	for {
		c.mu.Lock()
		unfinished, halted := int64(len(c.own.pending)), c.halted
		c.mu.Unlock()
		if halted || unfinished <= most || c.detach {
			return halted, nil
		}
		select {
		case <-c.room:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}
