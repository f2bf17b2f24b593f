package worker

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/worker/rounddir"
)

// A Runner runs rounds. By default, a [Worker] fetches the task's program and runs its run.sh in a process;
// [WithRunner] and [Handle] replace this default.
type Runner interface {
	// Run runs a round to its end. The rules of [Handler] for ctx, errors and panics apply. If Run returns an error,
	// the exit status of the round is 1, unless Ended contains another exit status. A worker runs as many rounds at
	// once as it has slots.
	Run(ctx context.Context, r *Round) (Ended, error)
}

// A preparer prepares each round before the round's directory is made. Its Prepare can also delay the task's timeout
// (holdTimeout).
type preparer interface {
	// Prepare returns the Runner of this one round. The Round has no directory, Stdout, Stderr, Checkpoint, LastError
	// and Deadline yet. If Prepare returns an error, the round fails as "could not be run", unless the error is [Unfit].
	Prepare(ctx context.Context, r *Round) (Runner, error)
}

// Ended says how a round ended.
type Ended struct {
	Exit string // "0" to "255", or "signal: " and the signal's name; "" means "1" if Run returned an error, else "0"

	Elapsed time.Duration // run time of the program; 0 means the run time of Run
	CPU     time.Duration // CPU time; 0 means unknown
	MaxRSS  int64         // peak memory in bytes; 0 means unknown

	// Reason explains the end of the round, such as a lack of memory. It becomes the last line of the round's error.
	Reason string

	// Permanent says that a failure of this round is final: the task fails, even if max_fails allows more rounds.
	Permanent bool

	unchanged map[string]bool // files of the program in the round's own directory that the round has not changed
}

// A direct is a preparer for a Runner that needs no preparation.
type direct struct{ Runner }

func (d direct) Prepare(context.Context, *Round) (Runner, error) { return d.Runner, nil }

// inProcessPreparer returns the preparer of a worker whose rounds run in this process, or nil.
func (o *options) inProcessPreparer() preparer {
	switch {
	case !o.inProcess():
		return nil
	case len(o.handlers) > 0:
		return o.handlers
	}
	return direct{o.runner}
}

// runInProcess runs a round in this process. If the Runner returns an error, ended describes the failure and err is
// nil. But if ctx has ended, or if the error is [Later] or [Unfit], err is that error. A panic ends neither the worker
// nor its other rounds. mask hides secrets. It gets each whole text, because it would not recognize a secret that was
// cut.
func runInProcess(ctx context.Context, runner Runner, r *Round, mask func(string) string) (ended Ended, err error) {
	defer func() {
		if p := recover(); p != nil {
			ended, err = failed(Ended{Exit: exitPanic}, panicText(mask(fmt.Sprint(p)), debug.Stack())),
				context.Cause(ctx)
		}
	}()
	ended, err = runner.Run(ctx, r)
	switch {
	case err == nil:
		ended.Exit = cmp.Or(ended.Exit, "0")
		return ended, nil
	case ctx.Err() != nil, isLater(err), isUnfit(err):
		return ended, err
	}
	ended.Permanent = ended.Permanent || isPermanent(err)
	return failed(ended, mask(err.Error())), nil
}

// exitPanic is the exit status of a round that panicked in this process: the same as for a Go program.
const exitPanic = "2"

func failed(ended Ended, reason string) Ended {
	ended.Exit, ended.Reason = broker.Failure(ended.Exit, reason, "the handler returned an error without a text")
	return ended
}

// panicText returns the round's error after a panic. The message comes first, as in a Go program, because it is the
// fingerprint of the failure.
func panicText(message string, stack []byte) string {
	return "panic: " + broker.Cut(message, broker.MaxReason/2) + "\n\n" + broker.Cut(string(stack),
		broker.MaxReason/2-100)
}

// RunInProcess runs one round in the directory dir, as a worker with this Runner does in its own process. It is for
// tests of Runners without a worker and Redis, such as those of package workertest.
func RunInProcess(ctx context.Context, runner Runner, r *Round, dir *rounddir.Dir) (Ended, error) {
	r.files = diskFiles{dir}
	return runInProcess(ctx, runner, r, func(text string) string { return text })
}

// diskFiles are the files of a round whose directory exists.
type diskFiles struct{ dir *rounddir.Dir }

func (f diskFiles) directory() (string, error) { return f.dir.Path(), nil }

func (f diskFiles) write(do func(d *rounddir.Dir) error) error { return do(f.dir) }
