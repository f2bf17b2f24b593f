package listing

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/lazy"
)

// A Fingerprint identifies a kind of failure. Two failed rounds have the same Fingerprint if they most likely failed for
// the same reason.
type Fingerprint struct {
	How  string
	Line string // the most informative line of stderr, with placeholders for the parts that differ between rounds
}

func (s Fingerprint) ID() string {
	sum := sha256.Sum256([]byte(s.How + "\x00" + s.Line))
	return hex.EncodeToString(sum[:])[:tdf.FailureIDLength]
}

// A Failure is a failed round.
type Failure struct {
	Task  *tdf.Task
	Round int
	How   string
}

func (f *Failure) Fingerprint() Fingerprint { return f.FingerprintOf(f.Line()) }

// FingerprintOf returns the fingerprint of the failure. Its parameter is the result of Line, which the caller already has.
func (f *Failure) FingerprintOf(line string) Fingerprint { return Fingerprint{f.How, normalise(line)} }

// Line returns the most informative line of the round's stderr. For a lost round it returns "", because TDF itself wrote
// this stderr, with the names of workers.
func (f *Failure) Line() string {
	if f.How == HowLost {
		return ""
	}
	return tellingLine(f.Task.Rounds.At(f.Round).Error)
}

// At returns when the round failed.
func (f *Failure) At() tdf.Time {
	r := f.Task.Rounds.At(f.Round)
	return max(r.FailedAt, r.TimedOutAt, r.LostAt, r.Entered[tdf.Executed], r.Entered[tdf.Failed], r.Entered[tdf.TimedOut], r.Entered[tdf.Expired])
}

// The values of Failure.How, besides exit statuses and signals.
const (
	HowTimedOut   = "timed out"
	HowLost       = "lost with its worker"
	HowNotRun     = "could not be run"
	HowRefused    = "ran, and what it left was refused" // a worker refused its result.json or files, or Redis could not store them
	HowNoExit     = "no exit status"                    // workers of the original TDF report no exit status
	HowNeverRan   = "expired before it ran"
	HowRanTooLong = "expired while it ran"
	HowLate       = "executed after end_before"
)

// FailuresOf returns the failed rounds of a task, oldest first. It returns only rounds that were read.
func FailuresOf(t *tdf.Task) []Failure {
	var all []Failure
	for i := range t.Rounds.All() {
		if how := HowFailed(t, i); how != "" {
			all = append(all, Failure{t, i, how})
		}
	}
	return all
}

// LastFailure returns the last failed round of a task, or nil if no round that was read has failed.
func LastFailure(t *tdf.Task) *Failure {
	all := FailuresOf(t)
	if len(all) == 0 {
		return nil
	}
	return &all[len(all)-1]
}

// HowFailed returns how a round failed, or "" if it did not fail.
func HowFailed(t *tdf.Task, round int) string {
	r := t.Rounds.At(round)
	ended := ""
	if round == t.Round {
		ended = Outcome(t)
	}
	switch {
	case r.TimedOutAt > 0 || ended == string(tdf.TimedOut):
		return HowTimedOut
	case r.LostAt > 0:
		return HowLost
	case r.FailedAt > 0 || ended == string(tdf.Failed):
		return HowExited(r)
	case ended == string(tdf.Expired):
		return howExpired(r)
	}
	return ""
}

func HowExited(r *tdf.Round) string {
	switch {
	case r.Exit == "" && r.Worker != "" && r.Claim == "":
		return HowNoExit
	case r.Exit == "" && r.Seconds > 0:
		return HowRefused
	case r.Exit == "":
		return HowNotRun
	case strings.HasPrefix(r.Exit, tdf.AnySignal):
		return r.Exit
	}
	return "exit status " + r.Exit
}

func howExpired(r *tdf.Round) string {
	switch {
	case r.Entered[tdf.Executed] > 0:
		return HowLate
	case r.Worker != "":
		return HowRanTooLong
	}
	return HowNeverRan
}

// Limits for the search for the most informative line.
const (
	endsLooked  = 64 << 10 // bytes that are searched at each end of a text
	linesLooked = 100      // lines that are searched; blank lines do not count
	lineLooked  = 1000     // bytes that are read of a line
	lineKept    = 200      // characters of a line in a fingerprint
)

// tellingLine returns the line of a program's stderr that best explains the failure. This is the last line without
// indentation, because tracebacks are indented. For a Go program, it is the line of the panic, because Go prints its
// traces below that line.
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

// isRemark reports whether a line is a remark that a language's runtime prints below the error.
func isRemark(line string) bool {
	return strings.HasPrefix(line, "note: ") || strings.HasPrefix(line, "Node.js v")
}

// panicLine returns the first line of a Go program's trace, or "" if the text contains no trace.
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

var escapes = lazy.Regexp("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|.)")

// clean returns a line as plain text. It removes colour codes. It also removes text that a carriage return overwrote, such
// as progress bars. It replaces unprintable characters with blanks.
func clean(line string) string {
	line = strings.TrimRight(line, "\r\n")
	line = line[strings.LastIndexByte(line, '\r')+1:]
	line = strings.ToValidUTF8(line[:min(len(line), lineLooked)], "\uFFFD")
	line = escapes().ReplaceAllString(line, "")
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
	{lazy.Regexp(`"[^"]*"|` + "`[^`]*`" + `|\B'[^']*'\B`), `"…"`},
	{lazy.Regexp(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "<uuid>"},
	{lazy.Regexp(`(?:/private)?(?:/tmp|/var/tmp|/var/folders|/dev/shm)/[^\s:,;)\]}>]*`), "<path>"},
	{lazy.Regexp(`(?:\B[-+])?\d+(?:\.\d+)+(?:[eE][+-]?\d+)?|(?:\B[-+])?\b\d+[eE][+-]?\d+\b|\b0[xX][0-9a-fA-F]+\b`), "<n>"},
	{lazy.Regexp(`(?i)\b(?:[0-9]+[a-f]|[a-f]+[0-9])[0-9a-f]*\b`), "<n>"}, // checksums, addresses
	{lazy.Regexp(`(?:\B[-+])?\d+`), "<n>"},
	{lazy.Regexp(`\s+`), " "},
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
