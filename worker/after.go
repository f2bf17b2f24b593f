package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/tdf-framework/tdf/redisstate"
)

// maxAfter is the maximum size of the file `after`, without its last line (docs/programs.md, "after").
const maxAfter = 64 << 20

// A dependency is a line of the file `after`: a task that this task waited for.
type dependency struct {
	ID      int64           `json:"id"`
	Outcome string          `json:"outcome"`
	Output  string          `json:"output"`
	Bytes   int64           `json:"output_bytes,omitempty"` // if Output is only the beginning: the number of bytes that the program printed
	Result  json.RawMessage `json:"result,omitempty"`
}

// removed is the outcome of a task that does not exist any more.
const removed = "removed"

func dependencyOf(t redisstate.Stored) dependency {
	if t.Task == nil {
		return dependency{ID: t.ID, Outcome: removed}
	}
	d := dependency{ID: t.ID, Outcome: t.Task.Outcome, Output: t.Task.LastOutput()}
	if d.Outcome == "" { // a user has retried the task, or the original TDF has archived it
		d.Outcome = string(t.Task.State)
	}
	if n := t.Task.Rounds.At(t.Task.LastRun()).OutputBytes; n > int64(len(d.Output)) {
		d.Bytes = n
	}
	if result := t.Task.LastResult(); json.Valid([]byte(result)) {
		d.Result = json.RawMessage(result)
	}
	return d
}

// An unreadError means that the dependencies of a task could not be read.
type unreadError struct{ error }

// writeDependencies writes the file `after`. If the file would become too large, its last line has the number of missing
// tasks.
func (e *execution) writeDependencies(ctx context.Context, to io.Writer) error {
	w := bufio.NewWriter(to)
	size, left := 0, 0
	var failed error
	more, err := e.s.store.EachDependency(ctx, e.task.ID, func(t redisstate.Stored) bool {
		var line []byte
		if line, failed = json.Marshal(dependencyOf(t)); failed != nil {
			return false
		}
		if size += len(line) + 1; size > maxAfter {
			left++
			return false
		}
		_, failed = w.Write(append(line, '\n'))
		return failed == nil
	})
	if err != nil {
		return unreadError{err}
	}
	if failed != nil {
		return failed
	}
	if left > 0 {
		if _, err := fmt.Fprintf(w, "{\"left_out\":%d}\n", left+more); err != nil {
			return err
		}
	}
	return w.Flush()
}
