package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/blob"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// A campaign is the tasks of a call.
type campaign struct {
	*run
	here      *here
	m         *cli.Client
	in        *inputs
	template  *template
	log       *jobLog
	rows      *resultsFile
	files     *resultsDir
	base      task.Properties
	began     time.Time
	lastStart time.Time // of a command, for --delay
	id        string    // of this call: containers may share a host name and a process id

	blobs     blob.Store // nil until files are sent
	sent      map[string]sentFile
	sentBytes atomic.Int64

	printer   printer
	skipped   int64 // commands that --resume leaves out
	shortened int64 // commands whose tasks lack some of their parameters

	mu                sync.Mutex
	own               owned
	vanished          []int64         // tasks that were removed, or lost by a failover, before their results were handled
	unsure            int             // tasks of an opening without an answer
	runs              []time.Duration // the last run times
	allOpened, halted bool
	status            int                     // the exit status for the failure that ends a call with one command
	room              chan struct{}           // gets a value when a task finishes
	abort             context.CancelCauseFunc // ends the call with an error

	settling sync.Mutex    // is held while a result is handled
	opening  chan struct{} // has a value while tasks are opened
}

// errHalted ends the call, because --halt now says so.
var errHalted = errors.New("--halt now")

// shownRuns is the number of run times from which the time left is estimated.
const shownRuns = 100

// carryOut opens the tasks, and handles their results until all have finished.
func (c *campaign) carryOut(ctx context.Context) error {
	c.room, c.opening, c.own = make(chan struct{}, 1), make(chan struct{}, 1), newOwned()
	c.printer = printer{a: c.a, tag: c.tag, quiet: c.quiet, files: c.files, outputs: c.here.outputs}
	working, stop := context.WithCancel(ctx)
	defer stop()
	progress := c.showProgress(working)
	opened := make(chan error, 1)
	var opening sync.WaitGroup
	opening.Go(func() { opened <- c.open(working) })
	var err error
	if c.detach {
		err = <-opened
	} else {
		err = c.await(working, opened)
	}
	stop()
	progress()
	opening.Wait() // so that it is known which tasks are open
	switch {
	case ctx.Err() != nil:
		err = c.interrupted(ctx)
	case errors.Is(err, errHalted):
		_, err = c.giveUp(ctx)
	case err != nil:
		ended, err2 := c.giveUp(ctx)
		if c.detach && c.own.opened > 0 {
			ended = fmt.Sprintf(" with %s in campaign %s%s", format.Tasks(int(c.own.opened)), c.base.Group, ended)
		}
		err = errors.Join(err, err2)
		if ended != "" && !errors.Is(err, cli.ErrNoReader) {
			err = fmt.Errorf("%w; the call ends%s", err, ended)
		}
	case c.detach:
		c.say("opened %s in campaign %s; progress: %s, results: tdf results %s",
			format.Tasks(int(c.own.opened)), c.base.Group,
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
		case <-c.here.lost():
			cancel(fmt.Errorf("the Redis of this call has ended, so some commands have no result: %w", c.here.redis.Err()))
		case <-ctx.Done():
		}
	}()
	if !c.here.temporary { // no one else can change the tasks of a Redis that only this call knows
		go c.compareAll(ctx)
	}
	err := c.m.Run(ctx, manager.Callbacks{
		Groups: []string{c.base.Group}, Skip: c.isForeign, InOrder: c.keepOrder, Concurrency: 1, Attempts: -1,
		Succeeded: c.handle, Failed: c.handle, TimedOut: c.handle, Expired: c.handle,
		Stop: func(ctx context.Context, _ manager.Summary) bool {
			err := c.haltEarly(ctx)
			if err != nil {
				c.abort(err)
			}
			return c.isComplete(ctx)
		},
	})
	switch {
	case errors.Is(context.Cause(ctx), errComplete):
		return nil
	case ctx.Err() != nil:
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

// isForeign reports whether a task belongs to another call.
func (c *campaign) isForeign(id int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.own.has(id) && (c.allOpened || !c.own.mayGet(id))
}

// isOwn reports whether this call has opened a task, perhaps in an opening that runs.
func (c *campaign) isOwn(ctx context.Context, id int64) bool {
	has := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.own.has(id)
	}
	if has() {
		return true
	}
	select {
	case c.opening <- struct{}{}:
		<-c.opening
	case <-time.After(time.Second): // a full Redis may refuse tasks until callbacks have returned
	case <-ctx.Done():
	}
	return has()
}

// handle handles the result of a task.
func (c *campaign) handle(ctx context.Context, t *manager.Finished) error {
	if !c.isOwn(ctx, t.ID) {
		return manager.ErrNotYet
	}
	if c.keepOrder {
		err := c.compareBefore(ctx, t.ID)
		if err != nil {
			return err
		}
	}
	c.settling.Lock()
	defer c.settling.Unlock()
	return c.settle(ctx, t.Task)
}

// settle handles the result of a task, unless it was handled before. The caller holds c.settling.
func (c *campaign) settle(ctx context.Context, t *manager.Task) error {
	c.mu.Lock()
	news := c.own.isNews(t)
	c.mu.Unlock()
	if !news {
		return nil
	}
	c.mu.Lock()
	of := c.own.pending[t.ID]
	c.mu.Unlock()
	if of.stdin != "" {
		_ = os.Remove(of.stdin) // best effort: the directory is removed at the end
	}
	if t.Outcome != task.Cancelled {
		err := c.record(ctx, t, of)
		if err != nil { // a full disk, for example: the results of other tasks would be lost, too
			c.abort(err)
			return err
		}
	}
	switch halts := c.count(t); {
	case halts && c.halt.now:
		c.abort(errHalted)
	case halts:
		c.cancel(ctx, task.Open)
	}
	c.poke()
	return nil
}

// count counts the result of a task. It reports whether --halt now ends the call.
func (c *campaign) count(t *manager.Task) (halts bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.own.handle(t)
	if last := t.LastRun(); last != nil {
		c.runs = append(c.runs, last.RunTime)
		c.runs = c.runs[max(0, len(c.runs)-shownRuns):]
	}
	if t.Outcome != string(task.Succeeded) && (!c.halted || c.status == 0) {
		c.status = statusOf(t)
	}
	halts = !c.halted && c.isHalt(0, 0)
	c.halted = c.halted || halts
	return halts
}

// isHalt reports whether the results are those for which --halt ends the call. The caller holds c.mu. The numbers are
// results that were not counted.
func (c *campaign) isHalt(failed, succeeded int64) bool {
	o := &c.own
	both := failed + succeeded
	succeeded += o.finished - o.failed - o.left - int64(len(c.vanished))
	return c.halt.isReached(o.failed+failed, succeeded, o.finished+both, c.total())
}

// haltEarly halts because of results that wait for earlier ones, as --keep-order demands. The waiting results are then
// handled at once if the call ends, and otherwise in their order.
func (c *campaign) haltEarly(ctx context.Context) error {
	if !c.keepOrder || c.halt.why == "" {
		return nil
	}
	c.settling.Lock() // no result is counted twice
	defer c.settling.Unlock()
	p, err := c.unhandled(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	halts := !c.halted && c.isHalt(p.failed, p.succeeded)
	c.halted = c.halted || halts && !c.halt.now
	c.mu.Unlock()
	switch {
	case !halts:
		return nil
	case !c.halt.now:
		c.cancel(ctx, task.Open)
		return nil
	}
	for _, id := range p.ended {
		t, err := c.m.Get(ctx, id)
		if err == nil {
			err = c.settle(ctx, t)
		}
		if err != nil && !errors.Is(err, task.ErrNoTask) {
			return err
		}
	}
	return nil
}

// record prints the output of a task that has finished, fetches its files, and writes its line of the job log, so that
// --resume does not leave out a task whose files are missing.
func (c *campaign) record(ctx context.Context, t *manager.Task, of item) error {
	err := c.printer.print(t, of)
	if err == nil && t.Outcome == string(task.Succeeded) {
		err = c.fetch(ctx, t)
	}
	if err != nil {
		return err
	}
	c.rows.add(t.ID)
	return c.log.add(t, of)
}

// outcome says how the tasks ended, and returns the error for the exit status.
func (c *campaign) outcome() error {
	if c.skipped > 0 {
		c.say("%s had succeeded before, and were left out", format.Counted(int(c.skipped), "command"))
	}
	o, bad := &c.own, c.own.failed
	switch {
	case c.halted && c.halt.why == "fail":
		c.a.Say("%s", c.halt.reason())
	case c.halted:
		c.say("%s", c.halt.reason())
	case o.left > 0: // a user has cancelled them
		c.a.Say("%s cancelled", format.Tasks(int(o.left)))
		bad += o.left
	}
	c.sayVanished()
	switch {
	case o.failed > 0 && !c.here.temporary:
		c.a.Say("%d of %d failed; causes: %s", o.failed, o.finished-o.left, cli.FailuresCommand(c.base.Group))
	case o.failed > 0 && o.opened > 1:
		c.a.Say("%d of %d failed", o.failed, o.finished-o.left)
	}
	switch {
	case len(c.vanished) > 0:
		return cli.ErrVanished
	case c.halted && c.halt.why == "success":
		return nil
	case bad > 0 && (c.in.single || c.halted && c.halt.isOne()):
		return cli.ExitStatus(c.status)
	case bad > 0:
		return cli.TasksFailed(bad)
	case c.printer.part > 0:
		return cli.ErrPart
	}
	return nil
}

// say writes a remark to a terminal, unless --quiet is given.
func (r *run) say(text string, args ...any) {
	if !r.quiet {
		r.a.Remark(text, args...)
	}
}

// counts returns what the progress shows.
func (c *campaign) counts() (finished, failed, left int64, runs []time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.own.finished, c.own.failed, int64(len(c.own.pending)), slices.Clone(c.runs)
}

// total returns the number of tasks, or -1 if it is unknown.
func (c *campaign) total() int64 {
	switch {
	case c.allOpened:
		return c.own.opened
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
