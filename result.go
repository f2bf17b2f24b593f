package tdf

import (
	"cmp"
	"fmt"
	"strings"
)

// A Result is what a worker reports of one round.
type Result struct {
	Output string // stdout, to the byte
	Error  string // stderr, to the byte; or why the program could not be run
	Exit   string // "0" to "255", "signal: killed"; "" if the program could not be run
	Reason    string // explains an end that does not explain itself, in a line behind Error; "" for none

	// Refused says that the round has failed whatever Exit says, for the reason in Why. Exit is not kept
	// then, but what the round cost is (docs/lifecycle.md, "What makes a round fail").
	Refused bool

	// Permanent says that a failure of this round is final, whatever max_fails allows.
	Permanent bool

	Started       Time    // by Redis's clock; 0: not known
	Seconds       Seconds // how long the program took; 0: not known
	ProgramSHA256 string  // of what was fetched; "" for a program put there by hand

	CPUSeconds              Seconds // of run.sh and what it started; 0: not known
	MaxRSS                  int64   // bytes; 0: not known
	OutputBytes, ErrorBytes int64   // true sizes of what Output and Error are cut from; 0: that of the text
	JSON                    string  // what the program left in result.json; "" for none

	// ClearLive says that the round has properties that only make sense while it runs, which are to go.
	ClearLive bool
}

// Execute reports the current round's result, fenced by the claim. The round counts as
// executed now, or when the program was done by its own account if that was earlier: a
// result that had to wait for Redis is not late.
func (t *Task) Execute(claim string, r Result) (Move, error) {
	m, err := t.move(VerbExecute, Executed)
	if err != nil {
		return m, err
	}
	m.Claim = claim
	m.Note = "executed"
	m.addResult(t.FailOn, r)
	if r.Started > 0 && r.Seconds > 0 {
		claimed := t.Current().Entered[Running]
		m.Stamp[0].At = Moment{Min: max(claimed, r.Started), Max: r.Started.Add(r.Seconds)}
	}
	return m, nil
}

// WithResult adds to a round that timed out what its program had printed by then.
func (m Move) WithResult(r Result) Move {
	m.addResult(FailOnStderr, r)
	return m
}

func (m *Move) addResult(f FailOn, r Result) {
	m.setRound(RoundOutput, r.Output)
	m.setRound(RoundError, r.explained(f))
	if r.Exit != "" && !r.Refused {
		m.setRound(RoundExit, r.Exit)
	}
	if r.Permanent {
		m.setRound(roundPermanent, "1")
	}
	if r.ProgramSHA256 != "" {
		m.setRound(RoundProgramSHA256, r.ProgramSHA256)
	}
	m.addCost(r)
	if r.JSON != "" {
		m.setRound(roundResult, r.JSON)
	}
	if r.ClearLive {
		for _, name := range []string{RoundTail, RoundPID, RoundLastOutput} {
			m.Clear = append(m.Clear, RoundField(m.Round, name))
		}
	}
}

// addCost is about rounds that ran, also those that are refused.
func (m *Move) addCost(r Result) {
	if r.Exit == "" {
		return
	}
	m.setRound(roundOutputBytes, fmt.Sprint(cmp.Or(r.OutputBytes, int64(len(r.Output)))))
	m.setRound(roundErrorBytes, fmt.Sprint(cmp.Or(r.ErrorBytes, int64(len(r.Error)))))
	if r.Seconds > 0 {
		m.setRound(roundSeconds, r.Seconds.String())
		m.setRound(roundCPUSeconds, r.CPUSeconds.String())
	}
	if r.MaxRSS > 0 {
		m.setRound(roundMaxRSS, fmt.Sprint(r.MaxRSS))
	}
}

// explained returns the round's error; where it would be empty though the round has failed,
// one line says why.
func (r Result) explained(f FailOn) string {
	round := Round{Exit: r.Exit, Failed: r.Error != ""}
	switch {
	case r.Reason != "" && (r.Error == "" || strings.HasSuffix(r.Error, "\n")):
		return r.Error + r.Reason
	case r.Reason != "":
		return r.Error + "\n" + r.Reason
	case r.Error != "":
		return r.Error
	case r.Refused:
		return "the program could not be run"
	case !round.HasFailed(f):
		return ""
	default:
		return fmt.Sprintf("run.sh ended with %s and printed nothing to stderr", exitText(r.Exit))
	}
}

func exitText(exit string) string {
	if len(exit) > len(exitSignal) && exit[:len(exitSignal)] == exitSignal {
		return exit
	}
	return "exit status " + exit
}
