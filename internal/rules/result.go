package rules

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
)

// A Result is a worker's report about one round.
type Result struct {
	Output string // stdout, byte for byte
	Error  string // stderr, byte for byte, or the reason why the program could not be run
	Exit   string // "0" to "255", or "signal: killed"; "" if the program could not be run
	Reason string // a line that explains the failure and follows Error in the round's error text; may be ""

	// Refused means that the round has failed for the given Reason, whatever Exit is. Redis then stores the resource
	// usage, but not Exit (docs/lifecycle.md, "What makes a round fail").
	Refused bool

	// Permanent means that a failure of this round is final, whatever max_fails allows.
	Permanent bool

	// InProcess means that the round ran in the worker's process, without a run.sh.
	InProcess bool

	Started       task.Time    // start of the program by Redis's clock; 0 if unknown
	Seconds       task.Seconds // run time of the program; 0 if unknown
	ProgramSHA256 string       // SHA-256 of the fetched file; "" for a program in a directory made by hand

	CPUSeconds              task.Seconds // CPU time of run.sh and the processes that it started; 0 if unknown
	MaxRSS                  int64        // peak memory in bytes; 0 if unknown
	OutputBytes, ErrorBytes int64        // number of bytes printed; 0 if Output and Error are complete
	JSON                    string       // content of result.json; "" if there is no such file

	Packed string      // the files that the round brings back, as tar.gz; "" if there are none
	Files  task.Files  // their number and size
	Made   []task.Blob // the blobs that the round has made: the files that it brings back in them, and those of its result

	// ClearLive means that Redis deletes those properties of the round that are useful only while the round runs.
	ClearLive bool
}

// Execute returns a Move that stores the result of the current round. The claim is a fence of the Move. The time of
// execution is the end of the program (Started + Seconds), or the time of the Move if the end is unknown. So a result
// does not count as late if the worker had to wait for Redis.
func Execute(t *task.Task, claim string, r Result) (Move, error) {
	m, err := move(t, VerbExecute, task.Executed)
	if err != nil {
		return m, err
	}
	m.Claim = claim
	m.Note = "executed"
	m.addResult(t.FailOn, r)
	m.Ran = r.Seconds
	if r.Started > 0 && r.Seconds > 0 {
		claimed := t.Current().Entered[task.Running]
		m.Stamp[0].At = Moment{Min: max(claimed, r.Started), Max: r.Started.Add(r.Seconds)}
	}
	if end := m.Stamp[0].At.Max; end > 0 && end <= t.EndBefore && !r.HasFailed(t.FailOn) {
		m.Opened, m.Ended = t.Opened(), end // the server lets it succeed
	}
	return m, nil
}

// Settled returns the Move of [Execute] together with the one that settles the task, so that the result counts at
// once (docs/lifecycle.md, "Results"). To let a round succeed, it needs of the task only when it ends and how long it
// is kept; to let it fail, also what decides whether it runs again. The server settles a result that may be too late.
func (m Move) Settled(t *task.Task, r Result) Move {
	if m.Verb != VerbExecute {
		return m
	}
	end := max(m.Stamp[0].At.Min, m.Stamp[0].At.Max)
	if end > t.EndBefore || end == 0 && t.EndBefore < task.Never {
		return m
	}
	executed := *t
	executed.State = task.Executed
	round := &task.Round{
		Entered: map[task.State]task.Time{task.Executed: end}, HasError: r.errorText(t.FailOn) != "", Permanent: r.Permanent,
		Committed: true,
	}
	if !r.Refused {
		round.Exit = r.Exit
	}
	executed.Rounds = task.Rounds{t.Round: round}
	s, ok := settleResult(&executed)
	if !ok {
		return m
	}
	s.ID, s.From, s.Claim, s.Limit, s.Ran, s.Ended, s.Settles = m.ID, m.From, m.Claim, m.Limit, m.Ran, m.Ended, true
	s.Set = append(s.Set, m.Set[1:]...) // without the state
	s.Stamp = append(m.Stamp, s.Stamp...)
	s.Clear = append(s.Clear, m.Clear...)
	s.Note = m.Note + ", " + s.Note
	if s.Opened = 0; s.To.Settled() {
		s.Opened = cmp.Or(m.Opened, t.Opened())
	}
	return s
}

// HasResult reports whether the Move stores the result of a round.
func (m *Move) HasResult() bool { return m.Verb == VerbExecute || m.Settles }

// WithResult adds a timed out round's output and resource usage to the Move of [TimeOut].
func (m Move) WithResult(r Result) Move {
	m.addResult(task.FailOnStderr, r)
	return m
}

func (m *Move) addResult(f task.FailOn, r Result) {
	text := r.errorText(f)
	m.setRound(task.RoundOutput, r.Output)
	m.setRound(task.RoundError, text)
	if r.Exit != "" && !r.Refused {
		m.setRound(task.RoundExit, r.Exit)
	}
	if r.Permanent {
		m.setRound(task.RoundPermanent, "1")
	}
	if r.ProgramSHA256 != "" {
		m.setRound(task.RoundProgramSHA256, r.ProgramSHA256)
	}
	m.addCost(r, text)
	if r.JSON != "" {
		m.setRound(task.RoundResult, r.JSON)
	}
	if r.Packed != "" {
		m.setRound(task.RoundFiles, r.Packed)
	}
	switch {
	case len(r.Made) > 0:
		m.set(task.FieldMade, task.JoinBlobs(r.Made))
	case m.Round > 0:
		m.Clear = append(m.Clear, task.FieldMade) // those of an earlier round
	}
	if r.Files != (task.Files{}) {
		m.setRound(task.RoundFetched, strings.TrimSpace(fmt.Sprintf("%d %d %s", r.Files.Count, r.Files.Bytes, r.Files.Kept)))
	}
	if r.ClearLive {
		for _, name := range []string{task.RoundTail, task.RoundTailEnd, task.RoundLastOutput} {
			m.Clear = append(m.Clear, task.RoundField(m.Round, name))
		}
	}
}

// addCost adds the resource usage of the program. If the program could not be run, addCost adds nothing. For a round in
// the worker's process, addCost leaves out the values that a reader assumes if they are missing: no CPU time, and no
// bytes beside an empty text. Such a round is short, and each property costs Redis time. The results of programs always
// have the same properties, because Redis needs less time for similar results.
func (m *Move) addCost(r Result, errorText string) {
	if r.Exit == "" {
		return
	}
	if n := cmp.Or(r.OutputBytes, int64(len(r.Output))); n > 0 || !r.InProcess {
		m.setRound(task.RoundOutputBytes, strconv.FormatInt(n, 10))
	}
	if n := cmp.Or(r.ErrorBytes, int64(len(r.Error))); n > 0 || errorText != "" || !r.InProcess {
		m.setRound(task.RoundErrorBytes, strconv.FormatInt(n, 10))
	}
	if r.Seconds > 0 {
		m.setRound(task.RoundSeconds, r.Seconds.String())
	}
	if r.Seconds > 0 && (r.CPUSeconds > 0 || !r.InProcess) {
		m.setRound(task.RoundCPUSeconds, r.CPUSeconds.String())
	}
	if r.MaxRSS > 0 {
		m.setRound(task.RoundMaxRSS, fmt.Sprint(r.MaxRSS))
	}
}

// errorText returns the round's error text. If the round has failed but its program printed nothing to stderr, the text
// is one line that explains the failure.
func (r Result) errorText(f task.FailOn) string {
	switch {
	case r.Error != "" || r.Reason != "":
		return AppendLine(r.Error, r.Reason)
	case r.Refused:
		return "the program could not be run"
	case !r.HasFailed(f):
		return ""
	default:
		return fmt.Sprintf("%s ended with %s and printed nothing to stderr", r.Subject(), exitText(r.Exit))
	}
}

// HasFailed reports whether the round of the result has failed (docs/lifecycle.md, "What makes a round fail").
func (r Result) HasFailed(f task.FailOn) bool {
	round := task.Round{Exit: r.Exit, HasError: r.Error+r.Reason != ""}
	return r.Refused || HasFailed(&round, f)
}

// AppendLine appends a line to a text. If the text does not end with a newline, AppendLine inserts one before the line.
// If the line is empty, AppendLine returns the text unchanged.
func AppendLine(text, line string) string {
	if text != "" && line != "" && text[len(text)-1] != '\n' {
		text += "\n"
	}
	return text + line
}

// Subject returns "run.sh", or "the round" if there was no run.sh. Texts that explain the result use it as their
// subject.
func (r Result) Subject() string {
	if r.InProcess {
		return "the round"
	}
	return "run.sh"
}

func exitText(exit string) string {
	if len(exit) > len(exitSignal) && exit[:len(exitSignal)] == exitSignal {
		return exit
	}
	return "exit status " + exit
}
