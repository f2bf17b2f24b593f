package tdf

// A Usual is a case that is so frequent that the server decides it once for many tasks. Settle returns the same Move for
// each task that fits it.
type Usual struct {
	Equal   []Field  // properties with these values
	Missing []string // properties that the task does not have
	Filled  []string // properties that are not empty
	Empty   string   // a property that is missing or empty
	Move    Move     // without the ID and the Group of a task
}

// UsualSuccess returns the most frequent case: a task without end_before and fail_on has been executed in its first round,
// with exit status 0 and nothing on stderr. Such a task succeeds.
func UsualSuccess() Usual {
	t := Task{Properties: Defaults("", "", ""), State: Executed, Rounds: Rounds{0: {
		Entered: map[State]Time{Executed: 1}, Claim: "any", Exit: "0", Committed: true,
	}}}
	m, _ := t.Settle(1, nil)
	return Usual{
		Equal: []Field{
			{fieldState, string(Executed)}, {fieldRound, "0"}, {fieldEndBefore, t.EndBefore.String()}, {RoundField(0, RoundExit), "0"},
		},
		Missing: []string{fieldFailOn},
		Filled:  []string{RoundField(0, RoundClaim)},
		Empty:   RoundField(0, RoundError),
		Move:    m,
	}
}
