package worker

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/tdf-framework/tdf"
)

// A Runner runs rounds. The one that a [Worker] has by default fetches the task's program and
// runs its run.sh; a team that would rather run tasks inside a Go process of its own sets another.
type Runner interface {
	// Run runs a round to its end. When ctx ends before, because the task's timeout is over,
	// the task is not this worker's any more, or the worker is told to stop, it ends the round
	// and returns ctx's error or cause: the slot stays busy until then. Any other error fails the
	// round (docs/programs.md, "Rounds without a process"): its text is appended to the round's
	// error, up to 32 KiB, and the exit status is 1 unless Ended says another one. A panic does
	// the same with exit status 2. One Runner runs as many rounds at once as the worker has slots.
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

// inProcess says that rounds run in this process: no program is fetched for them.
func (w *Worker) inProcess() bool {
	_, starts := w.Runner.(preparer)
	return w.Runner != nil && !starts
}

// runRound keeps a panic of a Runner from ending the worker, and all other rounds with it.
func (e *execution) runRound(ctx context.Context, r *Round) (ended Ended, err error) {
	mask := e.desk.secrets.Mask // before anything is cut
	defer func() {
		if p := recover(); p != nil {
			ended, err = failed(Ended{Exit: exitPanic}, panicText(mask(fmt.Sprint(p)), debug.Stack())), context.Cause(ctx)
		}
	}()
	ended, err = e.s.Runner.Run(ctx, r)
	if ended.Exit == "" && err == nil {
		ended.Exit = "0"
	}
	if !e.s.inProcess() || err == nil || ctx.Err() != nil {
		return ended, err
	}
	return failed(ended, mask(err.Error())), nil
}

// Exit statuses of rounds of a Runner in this process: those of a Go program that ends so.
const (
	exitError = "1"
	exitPanic = "2"
)

// failed is the end of a round that ran in this process and failed.
func failed(ended Ended, why string) Ended {
	if ended.Exit == "" || ended.Exit == "0" {
		ended.Exit = exitError
	}
	ended.Why = cmp.Or(cut(why, mostWhy), "the Runner returned an error without a text")
	return ended
}

// mostWhy bounds what a Runner says of its end, and each half of what is said of a panic, in bytes.
const mostWhy = 32 << 10

// panicText is what a Go program prints that panics: the message comes first, and tells rounds that failed for one reason
// from others.
func panicText(message string, stack []byte) string {
	return "panic: " + cut(message, mostWhy/2) + "\n\n" + cut(string(stack), mostWhy/2-100)
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}
