package manager

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode"

	"github.com/tdf-framework/tdf"
)

// A signature is what failed rounds have in common that most likely failed for one reason.
type signature struct {
	how  string
	line string // the telling line of what was printed to stderr, without what differs from round to round
}

// failureIDLength is how many hex digits name a signature.
const failureIDLength = 8

func (s signature) id() string {
	sum := sha256.Sum256([]byte(s.how + "\x00" + s.line))
	return hex.EncodeToString(sum[:])[:failureIDLength]
}

// A failure is a round that failed.
type failure struct {
	task  *tdf.Task
	round int
	how   string
}

func (f *failure) signature() signature { return f.signed(f.line()) }

// signed is for those who know its line already.
func (f *failure) signed(line string) signature { return signature{f.how, normalise(line)} }

// line returns the telling line of its stderr. What TDF wrote there about a lost round names its workers.
func (f *failure) line() string {
	if f.how == howLost {
		return ""
	}
	return tellingLine(f.task.Rounds.At(f.round).Error)
}

// at is when the round had failed.
func (f *failure) at() tdf.Time {
	r := f.task.Rounds.At(f.round)
	return max(r.FailedAt, r.TimedOutAt, r.LostAt, r.Entered[tdf.Executed], r.Entered[tdf.Failed], r.Entered[tdf.TimedOut], r.Entered[tdf.Expired])
}

// How rounds failed, where that is neither an exit status nor a signal.
const (
	howTimedOut   = "timed out"
	howLost       = "lost with its worker"
	howNotRun     = "could not be run"
	howRefused    = "ran, and what it left was refused" // its result.json or its files, or Redis could not store it
	howNoExit     = "no exit status"                    // by a worker of the original TDF, which does not tell it
	howNeverRan   = "expired before it ran"
	howRanTooLong = "expired while it ran"
	howLate       = "executed after end_before"
)

// failuresOf returns the failed rounds of a task, among those that were read of it, the last one at the end.
func failuresOf(t *tdf.Task) []failure {
	var all []failure
	for i := range t.Rounds.All() {
		if how := howFailed(t, i); how != "" {
			all = append(all, failure{t, i, how})
		}
	}
	return all
}

// lastFailure returns nil where no round has failed.
func lastFailure(t *tdf.Task) *failure {
	all := failuresOf(t)
	if len(all) == 0 {
		return nil
	}
	return &all[len(all)-1]
}

// howFailed tells how a round ended that failed; "" for any other.
func howFailed(t *tdf.Task, round int) string {
	r := t.Rounds.At(round)
	ended := ""
	if round == t.Round {
		ended = outcome(t)
	}
	switch {
	case r.TimedOutAt > 0 || ended == string(tdf.TimedOut):
		return howTimedOut
	case r.LostAt > 0:
		return howLost
	case r.FailedAt > 0 || ended == string(tdf.Failed):
		return howExited(r)
	case ended == string(tdf.Expired):
		return howExpired(r)
	}
	return ""
}

func howExited(r *tdf.Round) string {
	switch {
	case r.Exit == "" && r.Worker != "" && r.Claim == "":
		return howNoExit
	case r.Exit == "" && r.Seconds > 0:
		return howRefused
	case r.Exit == "":
		return howNotRun
	case strings.HasPrefix(r.Exit, anySignal):
		return r.Exit
	}
	return "exit status " + r.Exit
}

func howExpired(r *tdf.Round) string {
	switch {
	case r.Entered[tdf.Executed] > 0:
		return howLate
	case r.Worker != "":
		return howRanTooLong
	}
	return howNeverRan
}

// Bounds of what is looked at of a text: its two ends, and so much of a line.
const (
	endsLooked  = 64 << 10
	linesLooked = 100 // of those that may tell something
	lineLooked  = 1000
	lineKept    = 200
)

// tellingLine returns the line of a program's stderr that says most about why it failed: the last one that is not
// indented, as tracebacks are; of a Go program the line of its panic, which its traces come after.
func tellingLine(text string) string {
	if line := panicLine(text); line != "" {
		return clean(line)
	}
	indented := ""
	tail := text[max(0, len(text)-endsLooked):]
	for looked := 0; tail != "" && looked < linesLooked; {
		i := strings.LastIndexByte(tail, '\n')
		raw := strings.TrimRight(tail[i+1:], " \t\r")
		tail = tail[:max(i, 0)]
		if raw == "" || indented != "" && (raw[0] == ' ' || raw[0] == '\t') {
			continue
		}
		looked++
		switch line := clean(raw); {
		case strings.TrimSpace(line) == "" || isRemark(line):
		case line[0] != ' ':
			return line
		case indented == "":
			indented = line
		}
	}
	return strings.TrimSpace(indented)
}

// isRemark knows lines that runtimes add below the one that tells.
func isRemark(line string) bool {
	return strings.HasPrefix(line, "note: ") || strings.HasPrefix(line, "Node.js v")
}

// panicLine returns the line that a Go program's trace begins with, "" if there is no trace.
func panicLine(text string) string {
	for _, end := range []string{text[max(0, len(text)-endsLooked):], text[:min(len(text), endsLooked)]} {
		if !strings.Contains(end, "\ngoroutine ") {
			continue
		}
		for line := range strings.Lines(end) {
			if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
				return line
			}
		}
	}
	return ""
}

var escapes = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|.)")

// clean makes a line text: without what colours it, and with blanks for what cannot be shown. What was written
// over, as bars are, is gone.
func clean(line string) string {
	line = strings.TrimRight(line, "\r\n")
	line = line[strings.LastIndexByte(line, '\r')+1:]
	line = strings.ToValidUTF8(line[:min(len(line), lineLooked)], "\uFFFD")
	line = escapes.ReplaceAllString(line, "")
	return strings.TrimRight(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, line), " ")
}

// What differs between rounds that failed alike, and what stands for it. The order counts.
var placeholders = []struct {
	what  *regexp.Regexp
	stand string
}{
	{regexp.MustCompile(`"[^"]*"|` + "`[^`]*`" + `|\B'[^']*'\B`), `"…"`},
	{regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "<uuid>"},
	{regexp.MustCompile(`(?:/private)?(?:/tmp|/var/tmp|/var/folders|/dev/shm)/[^\s:,;)\]}>]*`), "<path>"},
	{regexp.MustCompile(`(?:\B[-+])?\d+(?:\.\d+)+(?:[eE][+-]?\d+)?|(?:\B[-+])?\b\d+[eE][+-]?\d+\b|\b0[xX][0-9a-fA-F]+\b`), "<n>"},
	{regexp.MustCompile(`(?i)\b(?:[0-9]+[a-f]|[a-f]+[0-9])[0-9a-f]*\b`), "<n>"}, // sums, addresses
	{regexp.MustCompile(`(?:\B[-+])?\d+`), "<n>"},
	{regexp.MustCompile(`\s+`), " "},
}

// normalise puts placeholders for what differs from round to round.
func normalise(line string) string {
	for _, p := range placeholders {
		line = p.what.ReplaceAllString(line, p.stand)
	}
	line = strings.TrimSpace(line)
	if runes := []rune(line); len(runes) > lineKept {
		line = string(runes[:lineKept])
	}
	return line
}
