package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/rounddir"
)

// A Round is one round of a task, for a [Handler] or a [Runner] to run.
//
// Its methods do what another program does with the files of the round's directory (docs/programs.md, "The round's
// directory"). Before the first call of [Round.Dir], these files are in memory. The worker reads them as often as it
// renews the lease, and when the round has ended. Several goroutines may call the methods at once.
type Round struct {
	ID int64 // the task's id
	// Namespace is the task's namespace. Tasks of different namespaces have the same ids.
	Namespace string
	Number    int      // the number of the round; the first round of a task is 0
	Program   string   // the name of the task's program
	Source    string   // where workers fetch the program from; a Handler needs none
	Input     string   // any bytes, if the task has them (docs/programs.md, "Inputs of any bytes")
	Args      []string // the input, split into words as a POSIX shell does
	Group     string   // the task's group (campaign), or ""
	Meta      string   // the manager's own data about the task

	Worker   string    // the worker's name
	Slot     int       // at least 1; unique among the rounds that run at the same time, in all namespaces
	Deadline time.Time // when the task times out or expires; the zero time means never

	Checkpoint []byte // the last checkpoint of the task's earlier rounds; nil if they set none
	LastError  string // the error of the task's previous round; "" if it had no error

	Stdout io.Writer // for the round's output
	Stderr io.Writer // for the round's error output
	Log    *slog.Logger

	// ProgramSHA256 is the checksum of the fetched program. "" means that nothing was fetched.
	ProgramSHA256 string

	execution *execution // nil in tests without a worker
	files     roundFiles // nil before the round runs

	mu     sync.Mutex
	opened []tdf.Definition // the tasks of Open
}

// roundFiles are the files of a round: its directory, which may not exist yet, and a way to write.
type roundFiles interface {
	directory() (string, error)
	write(do func(d *rounddir.Dir) error) error
}

var errNoFiles = errors.New("the round has no directory yet")

// Dir returns the round's directory. The first call makes the directory, because most rounds need none. If that fails,
// the error is [Unfit].
func (r *Round) Dir() (string, error) {
	if r.files == nil {
		return "", errNoFiles
	}
	return r.files.directory()
}

// replace gives a file of the round a new content in one step.
func (r *Round) replace(name string, data []byte) error {
	if r.files == nil {
		return errNoFiles
	}
	return r.files.write(func(d *rounddir.Dir) error { return d.Replace(name, data) })
}

// Env returns the environment for a process of this round (docs/programs.md, "The environment"). It includes TDF_DIR,
// the round's directory. The errors are those of [Round.Dir].
func (r *Round) Env() ([]string, error) {
	dir, err := r.Dir()
	if err != nil || r.execution == nil {
		return append(os.Environ(), dirVariable+dir), err
	}
	return r.execution.environment(dir), nil
}

// newRound returns a Round without the fields that need the round's directory.
func (e *execution) newRound(args []string, data []byte) *Round {
	t, input := e.task, e.task.Input
	if data != nil {
		e.data, input = data, string(data)
	}
	return &Round{
		ID: t.ID, Namespace: e.s.cfg.Namespace, Number: t.Round, Program: t.Program, Source: t.Source,
		Input: input, Args: args, Group: t.Group,
		Meta:   t.Meta,
		Worker: e.s.name, Slot: e.slot, Log: e.log, execution: e,
	}
}

// deadline returns when the task times out or expires, by this machine's clock. The zero time means never.
func (e *execution) deadline() time.Time {
	c := e.clock.Load()
	left := min(e.task.Timeout, e.task.EndBefore.Sub(c.redis))
	if left == task.Forever {
		return time.Time{}
	}
	return c.local.Add(left.Std())
}

// Bind parses the input as JSON into v, as [json.Unmarshal] does. Its error is [Permanent]: each round of the task has
// the same input.
func (r *Round) Bind(v any) error {
	if err := json.Unmarshal([]byte(r.Input), v); err != nil {
		return Permanent(fmt.Errorf("parse the input of task %d as JSON: %w", r.ID, err))
	}
	return nil
}

// SetResult stores v as the round's result, in JSON (result.json). The last call counts. If the result is larger
// than results may be, the round fails.
func (r *Round) SetResult(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("set the result of task %d: %w", r.ID, err)
	}
	if err := r.replace(rounddir.ResultFile, b); err != nil {
		return fmt.Errorf("set the result of task %d: %w", r.ID, err)
	}
	return nil
}

// SetCheckpoint stores data for the task's next round, which may run on any worker. Empty data deletes the
// checkpoint. The worker sends the checkpoint to Redis as often as it renews the lease. A crash of the worker may
// lose a checkpoint that was not sent yet.
func (r *Round) SetCheckpoint(data []byte) error {
	if err := r.replace(rounddir.CheckpointFile, data); err != nil {
		return fmt.Errorf("set the checkpoint of task %d: %w", r.ID, err)
	}
	return nil
}

// Progress reports how far the round is, for people who watch the round: a fraction from 0 to 1, and a text of up to
// 200 bytes. Progress is best effort: an error is only logged.
func (r *Round) Progress(fraction float64, text string) {
	line := fmt.Sprintf("%.6f %s\n", max(0, min(1, fraction)), strings.Join(strings.Fields(text), " "))
	if err := r.replace(rounddir.ProgressFile, []byte(line)); err != nil {
		r.Log.Warn("progress could not be reported", "error", err)
	}
}

// Update adds a line to the task's updates, for people who watch the task. Each line of a text becomes an update of its
// own. A line may have up to 4 KiB. Update is best effort: an error is only logged.
func (r *Round) Update(line string) {
	if err := r.addUpdate(line); err != nil {
		r.Log.Warn("an update could not be reported", "error", err)
	}
}

func (r *Round) addUpdate(line string) error {
	if r.files == nil {
		return errNoFiles
	}
	return r.files.write(func(d *rounddir.Dir) error { return d.Append(rounddir.UpdatesFile, line) })
}

// holdTimeout stops the task's timeout until Prepare returns, for at most limit. Over HTTP, the timeout goes on
// (docs/remote-workers.md). After an error, the round must not run.
func (r *Round) holdTimeout(ctx context.Context, limit time.Duration) error {
	e := r.execution
	if err := context.Cause(e.ctx); err != nil {
		return err
	}
	renewal := e.renewal()
	renewal.Limit = task.For(limit) + e.task.Timeout
	now, err := e.renewOne(ctx, renewal)
	e.held = err == nil && now > 0 // over HTTP, the timeout goes on, and there is no time
	return err
}

// Open opens tasks if the round succeeds (docs/lifecycle.md, "Tasks that open tasks"). Redis opens them in the same
// step in which it accepts the round's result. A definition that sets no program, queue, limit and so on has those of
// this task.
//
// An invalid definition makes the round fail. The error is [Permanent] if the round opens more than [task.MaxFollowing]
// tasks.
func (r *Round) Open(definitions ...tdf.Definition) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.opened)+len(definitions) > task.MaxFollowing {
		return Permanent(broker.ErrTooMany)
	}
	r.opened = append(r.opened, definitions...)
	return nil
}

// Opened returns the definitions that Open has got so far.
func (r *Round) Opened() []tdf.Definition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]tdf.Definition(nil), r.opened...)
}
