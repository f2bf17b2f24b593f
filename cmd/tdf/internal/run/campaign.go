package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/manager"
)

// A campaign is the tasks of a call.
type campaign struct {
	*run
	here     *here
	m        *cli.Client
	in       *inputs
	template *template
	log      *jobLog
	rows     *resultsFile
	base     tdf.Properties
	began    time.Time
	id       string // of this call: containers may share a host name and a process id

	printer   printer
	skipped   int64 // commands that --resume leaves out
	shortened int64 // commands whose tasks lack some of their parameters

	mu                             sync.Mutex
	opened, finished, failed, left int64           // left are the tasks that were cancelled
	runs                           []time.Duration // the last run times
	allOpened, halted              bool
	room                           chan struct{}           // gets a value when a task finishes
	abort                          context.CancelCauseFunc // ends the call with an error
}

// shownRuns is the number of run times from which the time left is estimated.
const shownRuns = 100

// carryOut opens the tasks, and handles their results until all have finished.
func (c *campaign) carryOut(ctx context.Context) error {
	c.room, c.printer = make(chan struct{}, 1), printer{a: c.a, tag: c.tag, quiet: c.quiet, outputs: c.here.outputs}
	working, stop := context.WithCancel(ctx)
	defer stop()
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
		err = c.interrupted(ctx)
	case err != nil:
		err = errors.Join(err, c.giveUp(ctx))
	case c.detach:
		c.a.Say("opened %s in campaign %s; progress: %s, results: tdf results %s", format.Tasks(int(c.opened)), c.base.Group,
			cli.WatchCommand(c.base.Group), c.base.Group)
		return nil
	}
	err = errors.Join(err, c.writeResults(c.a.Unhurried()))
	if err != nil {
		return err
	}
	return c.outcome()
}

// await handles results until all tasks have finished, or until opening them fails.
func (c *campaign) await(ctx context.Context, opened <-chan error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.abort = cancel
	go func() {
		err := <-opened
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
			cancel(withRoom(c.a, err))
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

func (c *campaign) poke() {
	select {
	case c.room <- struct{}{}:
	default:
	}
}

// handle handles the result of a task.
func (c *campaign) handle(ctx context.Context, t *manager.Finished) error {
	if t.Outcome != tdf.Cancelled {
		err := c.record(ctx, t.Task)
		if err != nil { // a full disk, for example: the results of other tasks would be lost, too
			c.abort(err)
			return err
		}
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

// record prints the output of a task that has finished, fetches its files, and writes its line of the job log, so that
// --resume does not leave out a task whose files are missing.
func (c *campaign) record(ctx context.Context, t *manager.Task) error {
	err := c.printer.print(t)
	if err == nil && t.Outcome == string(tdf.Succeeded) {
		err = c.fetch(ctx, t)
	}
	if err != nil {
		return err
	}
	c.rows.add(t.ID)
	return c.log.add(t)
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
	return errors.Join(context.Cause(ctx), c.giveUp(ending))
}

// giveUp cancels the tasks that only the worker of this call can run.
func (c *campaign) giveUp(ctx context.Context) error {
	if c.here.tags == nil {
		return nil
	}
	err := c.here.stopWorker()
	c.cancelOpen(ctx)
	return err
}

// outcome says how the tasks ended, and returns the error for the exit status.
func (c *campaign) outcome() error {
	if c.skipped > 0 {
		c.say("%s had succeeded before, and were left out", format.Counted(int(c.skipped), "command"))
	}
	if c.left > 0 {
		c.a.Say("%s failed, so %s were not run (--halt %d)", format.Tasks(int(c.failed)),
			format.Counted(int(c.left), "command"), c.halt)
	}
	switch {
	case c.failed == 0 && c.printer.part > 0:
		return cli.ErrPart
	case c.failed == 0:
		return nil
	}
	if !c.here.temporary {
		c.a.Say("%d of %d failed; causes: %s", c.failed, c.finished-c.left,
			cli.FailuresCommand(c.base.Group))
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
