package listing

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode"

	"github.com/tdf-framework/tdf/internal/lazy"
	"github.com/tdf-framework/tdf/internal/task"
)

// A Fingerprint identifies a kind of failure. Two failed rounds have the same Fingerprint if they most likely failed
// for the same reason.
type Fingerprint struct {
	How  string
	Line string // the most informative line of stderr, with placeholders for the parts that differ between rounds
}

func (s Fingerprint) ID() string {
	sum := sha256.Sum256([]byte(s.How + "\x00" + s.Line))
	return hex.EncodeToString(sum[:])[:task.FailureIDLength]
}

// A Failure is a failed round.
type Failure struct {
	Task  *task.Task
	Round int
	How   string
}

// Fingerprint returns the fingerprint by the line that the rule chooses (see [task.Query].FailureBy).
func (f *Failure) Fingerprint(rule string) Fingerprint { return f.FingerprintOf(f.Line(rule)) }

// FingerprintOf returns the fingerprint of the failure. Its parameter is the result of Line, which the caller already
// has.
func (f *Failure) FingerprintOf(line string) Fingerprint { return Fingerprint{f.How, normalise(line)} }

// Line returns the line of the round's stderr that a rule chooses: the most informative one if the rule is "". For a
// lost round it returns "", because TDF itself wrote this stderr, with the names of workers.
func (f *Failure) Line(rule string) string {
	if f.How == HowLost {
		return ""
	}
	return chosenLine(rule, f.Task.Rounds.At(f.Round).Error)
}

// At returns when the round failed.
func (f *Failure) At() task.Time {
	r := f.Task.Rounds.At(f.Round)
	return max(r.FailedAt, r.TimedOutAt, r.LostAt, r.Entered[task.Executed], r.Entered[task.Failed],
		r.Entered[task.TimedOut], r.Entered[task.Expired])
}

// The values of Failure.How, besides exit statuses and signals.
const (
	HowTimedOut = "timed out"
	HowLost     = "lost with its worker"
	HowNotRun   = "could not be run"
	// a worker refused its result.json or files, or Redis could not store them
	HowRefused    = "ran, and what it left was refused"
	HowNoExit     = "no exit status" // workers of the original TDF report no exit status
	HowNeverRan   = "expired before it ran"
	HowRanTooLong = "expired while it ran"
	HowLate       = "executed after end_before"
)

// FailuresOf returns the failed rounds of a task, oldest first. It returns only rounds that were read.
func FailuresOf(t *task.Task) []Failure {
	var all []Failure
	for i := range t.Rounds.All() {
		if how := HowFailed(t, i); how != "" {
			all = append(all, Failure{t, i, how})
		}
	}
	return all
}

// LastFailure returns the last failed round of a task, or nil if no round that was read has failed.
func LastFailure(t *task.Task) *Failure {
	all := FailuresOf(t)
	if len(all) == 0 {
		return nil
	}
	return &all[len(all)-1]
}

// HowFailed returns how a round failed, or "" if it did not fail.
func HowFailed(t *task.Task, round int) string {
	r := t.Rounds.At(round)
	ended := ""
	if round == t.Round {
		ended = Outcome(t)
	}
	switch {
	case r.TimedOutAt > 0 || ended == string(task.TimedOut):
		return HowTimedOut
	case r.LostAt > 0:
		return HowLost
	case r.FailedAt > 0 || ended == string(task.Failed):
		return HowExited(r)
	case ended == string(task.Expired):
		return howExpired(r)
	}
	return ""
}

func HowExited(r *task.Round) string {
	switch {
	case r.Exit == "" && r.Worker != "" && r.Claim == "":
		return HowNoExit
	case r.Exit == "" && r.Seconds > 0:
		return HowRefused
	case r.Exit == "":
		return HowNotRun
	case strings.HasPrefix(r.Exit, task.AnySignal):
		return r.Exit
	}
	return "exit status " + r.Exit
}

func howExpired(r *task.Round) string {
	switch {
	case r.Entered[task.Executed] > 0:
		return HowLate
	case r.Worker != "":
		return HowRanTooLong
	}
	return HowNeverRan
}

var escapes = lazy.Regexp("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|.)")

// clean returns a line as plain text. It removes colour codes. It also removes text that a carriage return overwrote,
// such as progress bars. It replaces unprintable characters with blanks.
func clean(line string) string {
	line = strings.TrimRight(line, "\r\n")
	line = line[strings.LastIndexByte(line, '\r')+1:]
	line = strings.ToValidUTF8(line[:min(len(line), lineLooked)], "\uFFFD")
	if strings.Contains(line, "\x1b") {
		line = escapes().ReplaceAllString(line, "")
	}
	return strings.TrimRight(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, line), " ")
}

// placeholders lists patterns of text that differs between similar failures, each with the text that replaces it. The
// patterns apply in this order.
var placeholders = []struct {
	what  func() *regexp.Regexp
	stand string
}{
	{lazy.Regexp(`"[^"]*"|` + "`[^`']*[`']" + `|\B'[^']*'\B|[“„«‹][^“”„«»‹›]*[“”»›]|[‘‚][^‘’‚]*[‘’]`), `"…"`},
	{lazy.Regexp(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "<uuid>"},
	{lazy.Regexp(`(?:/private)?(?:/tmp|/var/tmp|/var/folders|/dev/shm)/[^\s:,;)\]}>]*`), "<path>"},
	{
		lazy.Regexp(`(?:\B[-+])?\d+(?:\.\d+)+(?:[eE][+-]?\d+)?|(?:\B[-+])?\b\d+[eE][+-]?\d+\b|\b0[xX][0-9a-fA-F]+\b`),
		"<n>",
	},
	{lazy.Regexp(`(?i)\b(?:[0-9]+[a-f]|[a-f]+[0-9])[0-9a-f]*\b`), "<n>"}, // checksums, addresses
	{lazy.Regexp(`(?:\B[-+])?\d+`), "<n>"},
	{lazy.Regexp(`\s+`), " "},
	{lazy.Regexp(`^the round ended with `), "run.sh ended with "}, // kinds of workers say it differently
}

// normalise puts placeholders in place of the parts of a line that differ between similar failures.
func normalise(line string) string {
	for _, p := range placeholders {
		line = p.what().ReplaceAllString(line, p.stand)
	}
	line = strings.TrimSpace(line)
	if runes := []rune(line); len(runes) > lineKept {
		line = string(runes[:lineKept])
	}
	return line
}
