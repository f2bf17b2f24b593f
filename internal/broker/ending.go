package broker

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
)

// ExitError is the exit status of a round that has failed without an exit status of its own.
const ExitError = "1"

// MaxReason bounds the text that explains a failure, in bytes.
const MaxReason = 32 << 10

// MaxShort bounds a text for a task's log or a heartbeat, in bytes.
const MaxShort = 500

// Failure returns the exit status and the text of a round that has failed. An empty status or 0 becomes [ExitError]. A
// long text is cut, and an empty one is replaced by the given text.
func Failure(exit, reason, without string) (string, string) {
	if exit == "" || exit == "0" {
		exit = ExitError
	}
	return exit, cmp.Or(Cut(reason, MaxReason), without)
}

// Cut returns the beginning of a text, with an ellipsis if the text has more than the given number of bytes.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}

// Short returns a text as one short line, because a program may have written the text.
func Short(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if len(text) > MaxShort {
		text = strings.ToValidUTF8(text[:MaxShort], "") + "…"
	}
	return text
}

// A Way is how a round has ended.
type Way int

// The ways. With the last four, the worker gives the task back.
const (
	Done      Way = iota // the result says how, and whether the round has failed
	TimedOut             // it ran for longer than the timeout of its task
	Released             // nothing is counted
	Later                // nothing is counted, and the task waits for a time
	Unclaimed            // a prefetched task that has not started
	Unfit                // the worker cannot run the task; after three such releases of all workers, the round fails
)

// An Ending says how a round has ended (docs/lifecycle.md, "Released rounds").
type Ending struct {
	Way
	Claim  string
	Result rules.Result
	Reason string       // why the task is given back
	Delay  task.Seconds // for Later
	PutOff task.Time    // for Unfit: see [rules.ReleaseUnfit]
	// Unstarted says, for Done, that no host could have started the program.
	Unstarted bool
}

// Move returns the Move that reports the ending. If a task cannot be given back, the round fails instead: the ending is
// then Done, and its Result says why. The Move has no verb if a round that timed out can have no such report.
func (e *Ending) Move(t *task.Task) (m rules.Move) {
	var err error
	switch e.Way {
	case TimedOut:
		m, _ = rules.TimeOut(t)
		if e.Result.Error == "" {
			e.Result.Error = fmt.Sprintf("timed out: it ran for longer than %v s, and printed nothing to stderr",
				t.Timeout)
		}
		m = m.WithResult(e.Result)
	case Released:
		m, err = rules.Release(t, Short(e.Reason))
	case Unclaimed:
		m, err = rules.Unclaim(t, "its worker gives it back unstarted")
	case Later:
		m, err = rules.ReleaseLater(t, e.Delay, Short(e.Reason))
	case Unfit:
		var ok bool
		if m, ok = rules.ReleaseUnfit(t, Short(e.Reason), e.PutOff); !ok {
			e.Way, e.Result, e.Unstarted = Done, refused(e.Result, e.Reason), true
		}
	}
	if errors.Is(err, rules.ErrLastRound) {
		e.Way = Done
		e.Result = refused(e.Result, fmt.Sprintf("%s, and the task cannot be released: %v", e.Reason, err))
	}
	if e.Way == Done {
		m, _ = rules.Execute(t, e.Claim, e.Result)
	}
	m.Claim = e.Claim
	return m
}

// NotOpened makes the round fail, because its new tasks cannot be opened.
func (e *Ending) NotOpened(err error) {
	e.Result = refused(e.Result, fmt.Sprintf("its new tasks could not be opened: %v (%s ended with %s)", err,
		e.Result.Subject(), e.Result.Exit))
}

func refused(r rules.Result, reason string) rules.Result {
	r.Refused, r.Reason = true, reason
	return r
}

// Opens reports whether a round that has ended like this opens its new tasks. If the round has ended too late, its task
// expires, and opens none.
func (e *Ending) Opens(t *task.Task) bool {
	r := &e.Result
	return e.Way == Done && !r.HasFailed(t.FailOn) && r.Started.Add(r.Seconds) <= t.EndBefore
}
