package admin

import (
	"context"
	"iter"
	"time"

	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// An OutputPart is a part of the output of a round, in the order in which the program printed it.
type OutputPart struct {
	Text    string
	Skipped bool // text is missing before this part
	// End is the position after Text in all that the round has printed so far; 0 in the last part.
	End int64
	// Ended is true for the last part: the round has ended.
	Ended bool
	// Unknown is true if it is unknown which part of the round's whole output follows. Text is then empty.
	Unknown bool

	Task  *manager.Task  // a summary of the task, as last read
	Round *manager.Round // the round, as last read
}

// FollowPause is how often to look for new output, progress and updates of a running task.
const FollowPause = 500 * time.Millisecond

// FollowOutput yields the output of a round as it arrives, until the round ends. The worker reports it about every
// second. The task and the round must come from [Admin.Round] or [Admin.CurrentRound]. The parts contain stdout and
// stderr, in the order in which the worker saw them. After an error, the sequence ends.
func (a *Admin) FollowOutput(ctx context.Context, t *manager.Task, r *manager.Round) iter.Seq2[OutputPart, error] {
	return func(yield func(OutputPart, error) bool) {
		var tail tailReader
		for !RoundEnded(t, r.Number) {
			text, skipped := tail.next(r)
			if text != "" && !yield(OutputPart{Text: text, Skipped: skipped, End: r.TailEnd.All, Task: t, Round: r},
				nil) {
				return
			}
			var err error
			t, r, err = a.nextOutput(ctx, t.ID, r.Number)
			if err != nil {
				yield(OutputPart{}, err)
				return
			}
		}
		last := tail.rest(r)
		last.Ended, last.Task, last.Round = true, t, r
		yield(last, nil)
	}
}

// nextOutput reads a round again after the time in which its worker reports new output.
func (a *Admin) nextOutput(ctx context.Context, id int64, round int) (t *manager.Task, r *manager.Round, err error) {
	if err := a.Follow(ctx, id); err != nil {
		return nil, nil, err
	}
	if !conn.Sleep(ctx, FollowPause) {
		return nil, nil, context.Cause(ctx)
	}
	err = pool.Part(ctx, func(ctx context.Context) (kept int64, err error) { // the next look replaces it
		t, r, err = a.Round(ctx, id, round)
		return 0, err
	})
	return t, r, err
}

// RoundEnded reports whether a round of a task has ended.
func RoundEnded(t *manager.Task, round int) bool {
	return t.Round != round || t.State != task.Open && t.State != task.Running
}

// A tailReader is what a reader of growing output has had.
type tailReader struct{ at task.TailEnd }

// next returns the part of the round's tail that follows the earlier tails. skipped reports whether text is missing
// before it.
func (r *tailReader) next(round *manager.Round) (text string, skipped bool) {
	tail, end := round.Tail, round.TailEnd
	known := r.at.All - (end.All - int64(len(tail))) // how many bytes of the tail the reader has had
	if tail == "" || end.All <= r.at.All {           // no output yet, or the tail was removed
		return "", false
	}
	r.at = end
	return tail[max(known, 0):], known < 0
}

// rest returns the output that follows the last tail of a round: of stdout, and then of stderr. The round must have
// ended.
func (r *tailReader) rest(round *manager.Round) OutputPart {
	if round.Output == "" && round.Error == "" && round.Tail != "" { // the round was lost
		text, skipped := r.next(round)
		return OutputPart{Text: text, Skipped: skipped}
	}
	stdout, known := after(r.at.Stdout, round.Output, round.OutputWhole())
	stderr, known2 := after(r.at.Stderr, round.Error, round.ErrorWhole())
	if !known || !known2 {
		return OutputPart{Unknown: true}
	}
	return OutputPart{Text: stdout + stderr}
}

// after returns the part of a text from a position. It is unknown if the worker does not know the position, or has cut
// the text.
func after(at int64, text string, whole bool) (rest string, known bool) {
	if at != 0 && !whole || at < 0 || at > int64(len(text)) {
		return "", false
	}
	return text[at:], true
}
