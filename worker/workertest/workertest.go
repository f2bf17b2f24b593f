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
	"github.com/tdf-framework/tdf/worker"
	"github.com/tdf-framework/tdf/worker/internal/friend"
	"github.com/tdf-framework/tdf/worker/rounddir"
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

	Timeout    time.Duration // ends the handler's context; 0 means no timeout
	Checkpoint []byte        // the last checkpoint of earlier rounds
	LastError  string        // the error of the previous round
}

// A Result says how a round of a handler ended.
type Result struct {
	Output string // the text that the handler wrote to Stdout
	Error  string // the text that the handler wrote to Stderr, and then its error or panic; a worker stores it as $round:error
	Exit   string // "0", "1" after an error, "2" after a panic; "" if the round has no exit status

	// Err is nil if the round succeeded. Otherwise it is the handler's error, or ctx's error if the context had
	// ended. After a panic, its text is the panic's message and the stack.
	Err error

	Permanent bool          // the task fails for good
	Later     time.Duration // the delay of [worker.Later]; 0 if the handler did not use it
	Released  bool          // the task is released: because of [worker.Later] or [worker.Unfit], or because the context ended

	JSON         string // the result of SetResult; "" if it was not called
	Checkpoint   []byte // the checkpoint of SetCheckpoint; nil if unchanged, empty if deleted
	Updates      []string
	Progress     float64 // the last reported fraction
	ProgressText string
}

// maxBytes is the default of max_result, max_checkpoint and max_updates.
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
	dir, err := rounddir.Create(filepath.Join(temporary, "round"), before, nil, rounddir.Limits{Checkpoint: maxBytes, Result: maxBytes, Updates: maxBytes}, nil)
	if err != nil {
		panic(fmt.Errorf("workertest: make the round's directory: %w", err))
	}
	defer dir.Remove()
	var stdout, stderr bytes.Buffer
	r := t.round()
	r.Dir, r.Stdout, r.Stderr = dir.Path(), &stdout, &stderr
	if t.Timeout > 0 {
		var end context.CancelFunc
		r.Deadline = time.Now().Add(t.Timeout)
		ctx, end = context.WithTimeout(ctx, t.Timeout)
		defer end()
	}
	ended, err := run(ctx, h, r)
	result := Result{Output: stdout.String(), Error: stderr.String(), Exit: ended.Exit, Permanent: ended.Permanent}
	result.setErr(ctx, ended, err)
	result.collect(dir)
	return result
}

func (t Task) round() *worker.Round {
	args, _ := tdf.SplitInput(t.Input) // a manager opens no task whose input cannot be split
	return &worker.Round{
		ID: cmp.Or(t.ID, 1), Number: t.Round, Program: t.Program, Input: t.Input, Args: args, Group: t.Group, Meta: t.Meta,
		Worker: "workertest", Slot: 1, Checkpoint: t.Checkpoint, LastError: t.LastError, Log: slog.New(slog.DiscardHandler),
	}
}

// run runs the handler. It returns the handler's own error, because Ended contains only the text of the error.
func run(ctx context.Context, h worker.Handler, r *worker.Round) (worker.Ended, error) {
	var own error
	kept := worker.Handler(func(ctx context.Context, r *worker.Round) error {
		own = h(ctx, r)
		return own
	})
	ended, err := friend.RunInProcess(ctx, kept, r)
	return ended.(worker.Ended), cmp.Or(err, own)
}

func (result *Result) setErr(ctx context.Context, ended worker.Ended, err error) {
	var later *worker.LaterError
	switch {
	case err != nil && ctx.Err() != nil:
		result.Err, result.Released = ctx.Err(), !errors.Is(ctx.Err(), context.DeadlineExceeded)
	case errors.As(err, &later):
		result.Err, result.Later, result.Released = err, later.After, true
	case errors.As(err, new(*worker.UnfitError)):
		result.Err, result.Released = err, true
	case err != nil:
		result.Err = err
	case ended.Reason != "":
		result.Err = errors.New(ended.Reason)
	}
	if ended.Reason != "" {
		if result.Error != "" && result.Error[len(result.Error)-1] != '\n' {
			result.Error += "\n"
		}
		result.Error += ended.Reason
	}
}

// collect reads the files that the handler left in the round's directory.
func (result *Result) collect(dir *rounddir.Dir) {
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
		for _, problem := range news.Problems {
			result.Err = errors.Join(result.Err, errors.New(problem))
		}
		more = news.More
		dir.Accepted(news)
	}
	if result.Err != nil {
		return
	}
	json, _, err := dir.Result()
	result.JSON = json
	if err != nil {
		result.Err, result.Error, result.Exit = err, result.Error+err.Error(), ""
	}
}
