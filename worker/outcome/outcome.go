// Package outcome has the rules by which the end of a round becomes a report: what a failure, a delay and new tasks
// mean for the task. Package worker uses it for the rounds that it runs, and package remote for those of workers in
// other processes.
package outcome

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tdf-framework/tdf"
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

// NotReleased returns the result of a round whose task should be released for the reason why, but cannot be released
// because of err.
func NotReleased(r tdf.Result, why string, err error) tdf.Result {
	return refused(r, fmt.Sprintf("%s, and the task cannot be released: %v", why, err))
}

// NotOpened returns the result of a round that fails, because its new tasks cannot be opened.
func NotOpened(r tdf.Result, err error) tdf.Result {
	return refused(r, fmt.Sprintf("its new tasks could not be opened: %v (%s ended with %s)", err, r.Subject(), r.Exit))
}

func refused(r tdf.Result, reason string) tdf.Result {
	r.Refused, r.Reason = true, reason
	return r
}

// Opens reports whether a round with this result opens its new tasks. If the round has ended too late, its task
// expires, and opens none.
func Opens(t *tdf.Task, r *tdf.Result) bool {
	return !r.HasFailed(t.FailOn) && r.Started.Add(r.Seconds) <= t.EndBefore
}
