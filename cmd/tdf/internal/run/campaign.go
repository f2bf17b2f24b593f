package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/results"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/sweep"
)

// A campaign is the tasks of a call.
type campaign struct {
	*run
	here     *here
	m        *cli.Client
	in       *inputs
	command  []string
	template *template
	log      *jobLog
	base     tdf.Properties
	began    time.Time

	printer printer
	skipped int64 // commands that --resume leaves out

	mu                             sync.Mutex
	opened, finished, failed, left int64           // left are the tasks that were cancelled
	runs                           []time.Duration // the last run times
	allOpened, halted              bool
	room                           chan struct{} // gets a value when a task finishes
	stop                           context.CancelFunc
}

// A call opens at most openAtOnce tasks. If no input comes for openPause, it opens what it has. It opens no more tasks
// while many are unfinished, so that an endless input needs no endless memory: ahead of the slots of this machine, or
// aheadOfAll. The embedded Redis sorts its lists at each call, so short ones are faster.
const (
	openAtOnce = 100
	openPause  = 5 * time.Millisecond
	ahead      = 200
	aheadOfAll = 20_000
	shownRuns  = 100 // run times from which the time left is estimated
)

// carryOut opens the tasks, and handles their results until all have finished.
func (c *campaign) carryOut(ctx context.Context) error {
	c.room, c.printer = make(chan struct{}, 1), printer{a: c.a, tag: c.tag, quiet: c.quiet, outputs: c.here.outputs}
	working, stop := context.WithCancel(ctx)
	defer stop()
	c.stop = stop
	progress := c.showProgress(working)
	opened := make(chan error, 1)
	go func() { opened <- c.open(working) }()
	var err error
	if c.detach {
		err = <-opened
	} else {
		err = c.await(working, opened)
	}
	stop()
	progress()
	switch {
	case ctx.Err() != nil:
		return c.interrupted(ctx)
	case err != nil:
		return err
	case c.detach:
		c.a.Say("opened %s in campaign %s; progress: %s, results: tdf results %s", format.Tasks(int(c.opened)), c.base.Group,
			cli.WatchCommand(c.base.Group), c.base.Group)
		return nil
	}
	err = c.writeResults(ctx)
	if err != nil {
		return err
	}
	return c.outcome()
}

// await handles results until all tasks have finished, or until opening them fails.
func (c *campaign) await(ctx context.Context, opened <-chan error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	failed := make(chan error, 1)
	go func() {
		err := <-opened
		failed <- err
		if err != nil {
			cancel(err)
			return
		}
		c.poke()
	}()
	var broken <-chan error
	if c.here.tdf != nil {
		broken = c.here.tdf.Failed()
	}
	go func() {
		select {
		case err := <-broken:
			cancel(err)
		case <-ctx.Done():
		}
	}()
	err := c.m.Run(ctx, manager.Callbacks{
		Groups: []string{c.base.Group}, InOrder: c.keepOrder, Concurrency: 1, Attempts: -1,
		Succeeded: c.handle, Failed: c.handle, TimedOut: c.handle, Expired: c.handle,
		Stop: func(context.Context, manager.Summary) bool { return c.isComplete() },
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// open opens a task for each input that --resume does not leave out.
func (c *campaign) open(ctx context.Context) error {
	reading, end := context.WithCancel(ctx)
	defer end()
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
			batch = nil
			end()
			continue
		}
		_, err = c.m.OpenAs(ctx, c.m.Open, batch...)
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.opened += int64(len(batch))
		halted = c.halted
		c.mu.Unlock()
		if halted { // the tasks that were cancelled did not include these
			c.cancelOpen(ctx)
		}
	}
}

// endOpening closes the campaign, so that it is complete when all of its tasks have finished.
func (c *campaign) endOpening(ctx context.Context) error {
	c.mu.Lock()
	c.allOpened = true
	closes := c.opened > 0 && !c.here.temporary
	c.mu.Unlock()
	if !closes {
		return nil
	}
	return c.m.CloseGroup(ctx, c.base.Group)
}

// A fed is the task of an input, or the error that ended the inputs.
type fed struct {
	task tdf.Properties
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
			task, skip, err := c.taskOf(&row, number)
			if skip {
				continue
			}
			if !send(fed{task, err}) || err != nil {
				return
			}
		}
	}()
	return tasks
}

// taskOf returns the task of an input. skip means that --resume leaves it out.
func (c *campaign) taskOf(row *sweep.Row, number int64) (task tdf.Properties, skip bool, err error) {
	words, err := c.template.fill(row, number)
	if err != nil {
		return task, false, err
	}
	task = c.base
	task.Input, err = inputOf(words)
	if err != nil {
		return task, false, cli.Usagef("input %d: %v", number, err)
	}
	if c.log.hasSucceeded(task.Input) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.skipped++
		return task, true, nil
	}
	if len(row.Params) > 0 {
		task.Meta = row.JSON()
	}
	err = task.Validate()
	if err != nil {
		return task, false, cli.Usagef("input %d: %v", number, err)
	}
	return task, false, nil
}

// next returns the next batch: at least one task, or none at the end.
func next(ctx context.Context, tasks <-chan fed) (batch []tdf.Properties, err error) {
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
		unfinished, halted := c.opened-c.finished, c.halted
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

func (c *campaign) poke() {
	select {
	case c.room <- struct{}{}:
	default:
	}
}

// handle handles the result of a task.
func (c *campaign) handle(ctx context.Context, t *manager.Finished) error {
	if t.Outcome != tdf.Cancelled {
		err := c.printer.print(t.Task)
		if err != nil {
			return err
		}
		c.log.add(t.Task)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finished++
	switch t.Outcome {
	case string(tdf.Succeeded):
	case tdf.Cancelled:
		c.left++
	default:
		c.failed++
	}
	if last := t.LastRun(); last != nil {
		c.runs = append(c.runs, last.RunTime)
		c.runs = c.runs[max(0, len(c.runs)-shownRuns):]
	}
	if c.halt > 0 && c.failed >= int64(c.halt) && !c.halted {
		c.halted = true
		c.cancelOpen(ctx)
	}
	c.poke()
	return nil
}

// cancelOpen cancels the tasks that no worker has claimed yet.
func (c *campaign) cancelOpen(ctx context.Context) {
	_, err := c.m.CancelOpen(ctx, c.base.Group)
	if err != nil {
		c.a.Say("tdf: cancel the open tasks of campaign %s: %v", c.base.Group, err)
	}
}

func (c *campaign) isComplete() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.allOpened && c.finished >= c.opened
}

// interrupted says how to go on after Ctrl-C.
func (c *campaign) interrupted(ctx context.Context) error {
	ending, release := c.a.Outlive(ctx)
	defer release()
	c.mu.Lock()
	defer c.mu.Unlock()
	said := fmt.Sprintf("interrupted: %d of %s finished", c.finished, c.totalText())
	switch {
	case c.elsewhere():
		c.a.Say("%s; the workers go on. Progress: %s, cancel: tdf cancel --campaign %s", said,
			cli.WatchCommand(c.base.Group), c.base.Group)
	case c.joblog != "":
		c.a.Say("%s; the same command with --resume runs the rest", said)
	default:
		c.a.Say("%s; with --joblog FILE, --resume can run only the rest", said)
	}
	if c.here.tag != "" {
		err := c.here.stopWorker()
		c.cancelOpen(ending)
		return errors.Join(context.Cause(ctx), err)
	}
	return context.Cause(ctx)
}

// writeResults writes the file of --results.
func (c *campaign) writeResults(ctx context.Context) error {
	if c.run.results == "" {
		return nil
	}
	path := c.a.Path(c.run.results)
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write --results: %w", err)
	}
	all := results.From(ctx, c.m.Manager, manager.Query{Group: c.base.Group, Order: manager.ByID})
	done, err := results.CSV(all, f, results.Options{Fields: results.FromAuto})
	err = errors.Join(err, f.Close())
	if err != nil {
		return fmt.Errorf("write --results %s: %w", c.run.results, err)
	}
	c.say("wrote %s to %s", format.Counted(done.Rows, "row"), c.run.results)
	return nil
}

// outcome says how the tasks ended, and returns the error for the exit status.
func (c *campaign) outcome() error {
	if c.skipped > 0 {
		c.say("%s had succeeded before, and were left out", format.Counted(int(c.skipped), "command"))
	}
	if c.left > 0 {
		c.a.Say("%s failed, so %s were not run (--halt %d)", format.Tasks(int(c.failed)), format.Counted(int(c.left), "command"), c.halt)
	}
	if c.failed == 0 {
		return nil
	}
	if !c.here.temporary {
		c.a.Say("%d of %d failed; causes: tdf failures %s", c.failed, c.finished-c.left, c.base.Group)
	} else if c.opened > 1 {
		c.a.Say("%d of %d failed", c.failed, c.finished-c.left)
	}
	return cli.TasksFailed(c.failed)
}

// say writes a message to stderr, unless --quiet is given.
func (r *run) say(text string, args ...any) {
	if !r.quiet {
		r.a.Say(text, args...)
	}
}

// counts returns what the progress shows.
func (c *campaign) counts() (finished, failed, left int64, runs []time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.finished, c.failed, c.opened - c.finished, slices.Clone(c.runs)
}

// total returns the number of tasks, or -1 if it is unknown.
func (c *campaign) total() int64 {
	switch {
	case c.allOpened:
		return c.opened
	case c.in.total < 0:
		return -1
	}
	return c.in.total - c.skipped
}

func (c *campaign) totalText() string {
	total := c.total()
	if total < 0 {
		return "the tasks so far"
	}
	return format.Tasks(int(total))
}
