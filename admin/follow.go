package admin

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// An OutputPart is a part of the output of a round, in the order in which the program printed it.
type OutputPart struct {
	Text    string
	Skipped bool // text is missing before this part
	// Ended is true for the last part: the round has ended.
	Ended bool
	// Unknown is true if it is unknown which part of the round's whole output follows. Text is then empty.
	Unknown bool

	Task  *manager.Task  // a summary of the task, as last read
	Round *manager.Round // the round, as last read
}

// FollowPause is how often to look for new output, progress and updates of a running task.
const FollowPause = 500 * time.Millisecond

// FollowOutput yields the output of a round as it arrives, until the round ends. The worker reports it about every second.
// The task and the round must come from [Admin.Round] or [Admin.CurrentRound]. While the program runs, the parts contain stdout
// and stderr. The last part is the rest of stdout, or of stderr. After an error, the sequence ends.
func (a *Admin) FollowOutput(ctx context.Context, t *manager.Task, r *manager.Round, stderr bool) iter.Seq2[OutputPart, error] {
	return func(yield func(OutputPart, error) bool) {
		var tail tailReader
		for !RoundEnded(t, r.Number) {
			text, skipped := tail.next(r.Tail)
			if text != "" && !yield(OutputPart{Text: text, Skipped: skipped, Task: t, Round: r}, nil) {
				return
			}
			err := a.Follow(ctx, t.ID)
			if err == nil && !conn.Sleep(ctx, FollowPause) {
				err = context.Cause(ctx)
			}
			if err == nil {
				t, r, err = a.Round(ctx, t.ID, r.Number)
			}
			if err != nil {
				yield(OutputPart{}, err)
				return
			}
		}
		last := tail.rest(r, stderr)
		last.Ended, last.Task, last.Round = true, t, r
		yield(last, nil)
	}
}

// RoundEnded reports whether a round of a task has ended.
func RoundEnded(t *manager.Task, round int) bool {
	return t.Round != round || t.State != tdf.Open && t.State != tdf.Running
}

// A tailReader reconstructs a growing text from tails. A tail is the end of the text at one time.
type tailReader struct {
	last       string // the last tail
	all        []byte // text so far, if it is complete and not too long
	incomplete bool   // all is empty, because a part of the text is missing or the text is too long
}

// maxKept is the maximum number of bytes that a tailReader keeps.
const maxKept = 4 << 20

// next returns the part of a tail that the previous tail does not contain. Its second result reports whether
// text is missing between the two tails.
func (r *tailReader) next(tail string) (text string, skipped bool) {
	if tail == "" { // no output yet, or the tail was removed
		return "", false
	}
	before := r.last
	r.last = tail
	defer func() { r.keep(text, skipped) }()
	return Beyond(before, tail)
}

// Beyond returns the part of a tail that a text before does not contain, and whether text is missing between them. A tail is the end of a growing text, as
// in [manager.Round].
func Beyond(before, tail string) (text string, skipped bool) {
	for n := min(len(before), len(tail)); n > 0; n-- {
		if strings.HasSuffix(before, tail[:n]) {
			return tail[n:], false
		}
	}
	return tail, before != ""
}

func (r *tailReader) keep(text string, skipped bool) {
	r.incomplete = r.incomplete || skipped || len(r.all)+len(text) > maxKept
	if r.all = append(r.all, text...); r.incomplete {
		r.all = nil
	}
}

// rest returns the output that follows the last tail of a round. The round must have ended.
func (r *tailReader) rest(round *manager.Round, stderr bool) OutputPart {
	text := round.Output
	if stderr {
		text = round.Error
	}
	if round.Output == "" && round.Error == "" && round.Tail != "" { // the round was lost
		text, skipped := r.next(round.Tail)
		return OutputPart{Text: text, Skipped: skipped}
	}
	at := r.end(text)
	if at < 0 {
		return OutputPart{Unknown: true}
	}
	return OutputPart{Text: text[at:]}
}

// end returns the position in text at which the last tail ends, or -1 if the position is unknown.
func (r *tailReader) end(text string) int {
	if !r.incomplete && strings.HasPrefix(text, string(r.all)) {
		return len(r.all)
	}
	const enough = 200
	last := r.last[max(0, len(r.last)-enough):]
	if last == "" {
		return 0
	}
	if i := strings.LastIndex(text, last); i >= 0 && i == strings.Index(text, last) {
		return i + len(last)
	}
	return -1
}
