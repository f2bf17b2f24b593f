package tdf

// A Usual describes a kind of task that is so frequent that the server settles many tasks of this kind with one
// decision. Settle would return the same Move for each of these tasks. A task is of this kind if it meets the
// conditions Equal, Filled and Missing, and all conditions of at least one Variant.
type Usual struct {
	Equal    []Field  // properties that must have these values
	Filled   []string // properties that must not be empty
	Missing  []string // properties that the task must not have
	Variants []Variant
	Move     Move // the result of Settle, without the ID and the Group of a task
}

// A Variant is one set of conditions that a [Usual] has in addition to its own.
type Variant struct {
	Equal   []Field  // properties that must have these values
	Missing []string // properties that the task must not have
	Empty   string   // a property that must be missing or empty; "" sets no condition
}

// UsualSuccess returns the most frequent kind of task: it has no end_before, no keep_finished, no keep_outputs and no links,
// and its program has ended in the first round with exit status 0. If fail_on makes stderr a failure, the program also printed nothing to stderr. The Move
// makes the task succeed.
func UsualSuccess() Usual {
	t := Task{Properties: Defaults("", "", ""), State: Executed, Rounds: Rounds{0: {
		Entered: map[State]Time{Executed: 1}, Claim: "any", Exit: "0", Committed: true,
	}}}
	m, _ := t.Settle(1, nil)
	stderr := RoundField(0, RoundError)
	return Usual{
		Equal: []Field{
			{fieldState, string(Executed)}, {fieldRound, "0"}, {fieldEndBefore, t.EndBefore.String()}, {RoundField(0, RoundExit), "0"},
		},
		Filled:  []string{RoundField(0, RoundClaim)},
		Missing: []string{fieldKeepFinished, fieldKeepOutputs, fieldLinks},
		Variants: []Variant{
			{Missing: []string{fieldFailOn}, Empty: stderr},
			{Equal: []Field{{fieldFailOn, string(FailOnExit)}}},
			{Equal: []Field{{fieldFailOn, string(FailOnAny)}}, Empty: stderr},
		},
		Move: m,
	}
}
