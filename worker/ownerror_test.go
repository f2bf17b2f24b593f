package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
)

// errOther is an error that a handler may get from a manager, about another task.
var errOther = &tdf.StateError{ID: 99, State: tdf.Archived}

// A handler's own error may contain a StateError. If this StateError is about another task, it says nothing about the
// handler's task.
func TestStateErrorOfAHandler(t *testing.T) {
	for name, c := range map[string]struct {
		mark  func(error) error
		after tdf.State
	}{
		"later": {func(err error) error { return Later(time.Hour, err) }, tdf.Open},
		"unfit": {Unfit, tdf.Open},
		"plain": {func(err error) error { return err }, tdf.Executed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := w.open("", forHandler("p"))
			w.runOnce(w.worker(Handle("p", func(_ context.Context, r *Round) error {
				r.Update("seen")
				return errors.Join(r.SetCheckpoint([]byte("state")), c.mark(errOther))
			})))
			if got := w.task(id); got.State != c.after || got.Checkpoint != "state" || got.Losses != 0 {
				t.Errorf("the task is %s, with the checkpoint %q\n%s", got.State, got.Checkpoint, got.Log)
			}
			w.updated(id, "0-1 seen")
		})
	}
}

// The error of a Preparer may also be a StateError about another task. The round then fails with this error.
func TestStateErrorOfAPreparer(t *testing.T) {
	w := newWorld(t)
	id := w.open("")
	w.runOnce(w.worker(WithRunner(preparer(func(context.Context, *Round) (Runner, error) { return nil, errOther }))))
	if got := w.finished(id); got.State != tdf.Failed || !strings.Contains(got.LastError(), errOther.Error()) {
		t.Errorf("the task is %s: %q", got.State, got.LastError())
	}
}
