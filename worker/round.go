package worker

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/tdf-framework/tdf"
)

// A Runner runs rounds. The one that a [Worker] has by default fetches the task's program and
// runs its run.sh; a team that would rather run tasks inside a Go process of its own sets another.
type Runner interface {
	// Run runs a round to its end. When ctx ends before, because the task's timeout is over,
	// the task is not this worker's any more, or the worker is told to stop, it ends the round
	// and returns ctx's error or cause: the slot stays busy until then. Any other error is why
	// the round could not be run; its text is the round's error, and the round has failed
	// (docs/lifecycle.md, "What makes a round fail"). A panic is such an error. One Runner runs
	// as many rounds at once as the worker has slots.
	Run(ctx context.Context, r *Round) (Ended, error)
}

// A Round is what a [Runner] gets to run.
type Round struct {
	Task   *tdf.Task // running; its number is Task.Round
	Args   []string  // the task's input, split into words
	Dir    string    // TDF_DIR, the round's directory (docs/programs.md)
	Env    []string  // what a program of the round gets as its environment
	Stdout *os.File  // what is written here becomes the round's output
	Stderr *os.File  // likewise its error

	execution *execution
}

// Ended says how a round ended that was run.
type Ended struct {
	// Exit is "0" to "255", or "signal: " and its name. "" counts as "0".
	Exit string

	Seconds    tdf.Seconds // that the program took; 0: all that Run took
	CPUSeconds tdf.Seconds // 0: not known
	MaxRSS     int64       // bytes; 0: not known

	// Why explains, in a line of the round's error, an end that does not explain itself: out
	// of memory. "" for none.
	Why string

	ProgramSHA256 string // of what was fetched; "" for none
}

// A preparer is a [Runner] that has something to do before the task's timeout begins to count.
type preparer interface {
	prepare(ctx context.Context, e *execution) error
}

// runRound keeps a panic of a Runner from ending the worker, and all other rounds with it.
func (e *execution) runRound(ctx context.Context, r *Round) (ended Ended, err error) {
	defer func() {
		if p := recover(); p != nil {
			ended, err = Ended{}, panicked(p)
		}
	}()
	ended, err = e.s.Runner.Run(ctx, r)
	if ended.Exit == "" && err == nil {
		ended.Exit = "0"
	}
	return ended, err
}

func panicked(value any) error {
	return fmt.Errorf("the runner panicked: %v\n%s", value, debug.Stack())
}
