// Package workertest tests handlers of package worker without Redis.
//
//	result := workertest.Run(t.Context(), square, workertest.Task{Input: "12"})
//	if result.Err != nil || result.JSON != "144" {
//		t.Errorf("got %+v", result)
//	}
package workertest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/rounddir"
	"github.com/tdf-framework/tdf/worker"
)

// A Task is the task whose round the handler runs. The zero Task is valid: it has an empty input, and the round is
// its first.
type Task struct {
	ID      int64 // default: 1
	Round   int
	Program string
	Input   string
	Group   string
	Meta    string

	FailOn     tdf.FailOn    // what makes the round fail; the default is tdf.FailOnStderr, as for tasks
	Timeout    time.Duration // ends the handler's context; 0 means no timeout
	Checkpoint []byte        // the last checkpoint of earlier rounds
	LastError  string        // the error of the previous round
}

// A Result says how a round of a handler ended.
type Result struct {
	Output string // the text that the handler wrote to Stdout
	// the text that the handler wrote to Stderr, and then its error or panic; a worker stores it as $round:error
	Error string
	Exit  string // "0", "1" after an error, "2" after a panic; "" if the round has no exit status

	// Err is nil if the round succeeded. Otherwise it is the handler's error, or the cause of the context's end if the
	// context had ended. After a panic, the text of Err is the panic's message and the stack. If the handler returned
	// nil, but Task.FailOn makes its text on Stderr a failure, Err says so.
	Err error

	Permanent bool          // the task fails for good
	Later     time.Duration // the delay of [worker.Later]; 0 if the handler did not use it
	TimedOut  bool          // the round was ended by Task.Timeout
	// the task is released: because of [worker.Later] or [worker.Unfit], or because the context ended
	Released bool

	Opened []tdf.Definition // the tasks of Round.Open; a worker opens them only if the round succeeds

	JSON         string // the result of SetResult; "" if it was not called, or if a worker would not store it
	Checkpoint   []byte // the checkpoint of SetCheckpoint; nil if unchanged, empty if deleted
	Updates      []string
	Progress     float64 // the last reported fraction
	ProgressText string

	// Problems are data that a worker ignores, with a warning in its log, such as a checkpoint that is too large.
	Problems []string
}

// maxBytes is the bound of a result, a checkpoint and updates.
const maxBytes = 1 << 20

// Run runs a handler as a worker does, and returns how the round ended. It panics if it cannot make a temporary
// directory.
//
// If a worker would refuse the handler's result, for example because it is larger than 1 MiB, Result.Err says so.
func Run(ctx context.Context, h worker.Handler, t Task) Result {
	temporary, err := os.MkdirTemp("", "workertest-*")
	if err != nil {
		panic(fmt.Errorf("workertest: make a directory: %w", err))
	}
	defer os.RemoveAll(temporary)
	before := rounddir.Before{Checkpoint: t.Checkpoint, LastError: t.LastError}
	dir, err := rounddir.Create(filepath.Join(temporary, "round"), before, nil, rounddir.Limits{
		Checkpoint: maxBytes,
		Result:     maxBytes, Updates: maxBytes,
	}, nil)
	if err != nil {
		panic(fmt.Errorf("workertest: make the round's directory: %w", err))
	}
	defer dir.Remove()
	var stdout, stderr bytes.Buffer
	r := t.round()
	r.Stdout, r.Stderr = &stdout, &stderr
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if t.Timeout > 0 {
		r.Deadline = time.Now().Add(t.Timeout)
		defer time.AfterFunc(t.Timeout, func() { end(errTimedOut) }).Stop()
	}
	ended, err := run(ctx, h, r, dir)
	result := Result{
		Opened: r.Opened(), Output: stdout.String(), Error: stderr.String(), Exit: ended.Exit,
		Permanent: ended.Permanent,
	}
	collects := result.setErr(ctx, ended, err)
	result.readNews(dir)
	if collects {
		result.readJSON(dir)
	}
	result.Error = rules.AppendLine(result.Error, ended.Reason)
	result.applyFailOn(cmp.Or(t.FailOn, tdf.FailOnStderr))
	return result
}

// errTimedOut is the cause with which Run ends the context when the timeout is over. As in a worker, the context has no
// deadline.
var errTimedOut = errors.New("the task's timeout is over")

func (t Task) round() *worker.Round {
	args, _ := task.SplitInput(t.Input) // a manager opens no task whose input cannot be split
	return &worker.Round{
		ID: cmp.Or(t.ID, 1), Number: t.Round, Program: t.Program, Input: t.Input, Args: args, Group: t.Group,
		Meta:   t.Meta,
		Worker: "workertest", Slot: 1, Checkpoint: t.Checkpoint, LastError: t.LastError,
		Log: slog.New(slog.DiscardHandler),
	}
}

// run runs the handler. It returns the handler's own error, because Ended contains only the text of the error.
func run(ctx context.Context, h worker.Handler, r *worker.Round, dir *rounddir.Dir) (worker.Ended, error) {
	var own error
	kept := worker.Handler(func(ctx context.Context, r *worker.Round) error {
		own = h(ctx, r)
		return own
	})
	ended, err := worker.RunInProcess(ctx, kept, r, dir)
	return ended, cmp.Or(err, own)
}

// setErr sets Err. It returns whether a worker would store a result of the round.
func (result *Result) setErr(ctx context.Context, ended worker.Ended, err error) (collects bool) {
	var later *worker.LaterError
	switch {
	case err != nil && ctx.Err() != nil:
		result.Err = context.Cause(ctx)
		result.TimedOut = result.Err == errTimedOut
		result.Released = !result.TimedOut
	case errors.As(err, &later):
		result.Err, result.Later, result.Released = err, later.After, true
	case errors.As(err, new(*worker.UnfitError)):
		result.Err, result.Released = err, true
	case err != nil:
		result.Err = err
		return true
	case ended.Reason != "":
		result.Err = errors.New(ended.Reason)
		return true
	default:
		return true
	}
	return false
}

// readNews reads the files that a worker reads while the round runs.
func (result *Result) readNews(dir *rounddir.Dir) {
	for more := true; more; {
		news := dir.News(true)
		if news.HasProgress {
			number, text, _ := bytes.Cut([]byte(news.Progress), []byte(" "))
			_, _ = fmt.Sscan(string(number), &result.Progress)
			result.ProgressText = string(text)
		}
		if news.Checkpoint != nil {
			result.Checkpoint = news.Checkpoint
		}
		result.Updates = append(result.Updates, news.Updates...)
		result.Problems = append(result.Problems, news.Problems...)
		more = news.More
		dir.Accepted(news)
	}
}

func (result *Result) readJSON(dir *rounddir.Dir) {
	text, err := dir.Result()
	result.JSON = text
	if err != nil {
		result.Err = errors.Join(err, result.Err)
		result.Error, result.Exit = rules.AppendLine(result.Error, err.Error()), ""
	}
}

// applyFailOn sets Err if the handler returned nil, but its text on Stderr makes the round fail.
func (result *Result) applyFailOn(rule tdf.FailOn) {
	round := task.Round{Exit: result.Exit, HasError: result.Error != ""}
	if result.Err == nil && rules.HasFailed(&round, rule) {
		result.Err = fmt.Errorf("the round fails because the handler wrote to Stderr (fail_on=%s): %s", rule,
			result.Error)
	}
}
