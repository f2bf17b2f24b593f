package worker

import (
	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/task"
)

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

// followingOf returns the tasks that a round wants to open: those of its handler, and those of its file open.jsonl.
func followingOf(r *Round, openFile string) ([]broker.Following, error) {
	return broker.ParseLines(broker.Numbered("task %d that the handler opens", r.Opened()), openFile)
}
