package broker

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/tdf-framework/tdf/redisstate"
)

// MaxAfter is the maximum size of the file `after`, without its last line (docs/programs.md, "after").
const MaxAfter = 64 << 20

// A dependency is a line of the file `after`: a task that this task waited for.
type dependency struct {
	ID      int64  `json:"id"`
	Outcome string `json:"outcome"`
	Output  string `json:"output"`
	// if Output is only the beginning: the number of bytes that the program printed
	Bytes  int64           `json:"output_bytes,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
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

// A Dependent reads what a task has waited for.
type Dependent interface {
	EachDependency(ctx context.Context, id int64, each func(redisstate.Stored) bool) (left int, err error)
}

// WriteDependencies writes the file `after` of a task. If the file would become too large, its last line has the number
// of missing tasks. The error unread says why tasks could not be read, and err why the file could not be written.
func WriteDependencies(ctx context.Context, s Dependent, id int64, to io.Writer) (unread, err error) {
	w := bufio.NewWriter(to)
	size, left := 0, 0
	more, unread := s.EachDependency(ctx, id, func(t redisstate.Stored) bool {
		var line []byte
		if line, err = json.Marshal(dependencyOf(t)); err != nil {
			return false
		}
		if size += len(line) + 1; size > MaxAfter {
			left++
			return false
		}
		_, err = w.Write(append(line, '\n'))
		return err == nil
	})
	if unread != nil || err != nil {
		return unread, err
	}
	if left > 0 {
		if _, err := fmt.Fprintf(w, "{\"left_out\":%d}\n", left+more); err != nil {
			return nil, err
		}
	}
	return nil, w.Flush()
}
