package tdf

// A Usual describes a kind of task that is so frequent that the server settles many tasks of this kind with one
// decision. Settle would return the same Move for each of these tasks. A task is of this kind if it meets the
// conditions Equal, Missing and Filled, and those of a Variant.
type Usual struct {
	Equal    []Field  // properties that must have these values
	Missing  []string // properties that the task must not have
	Filled   []string // properties that must not be empty
	By       string   // the property whose value selects the variant
	Variants []Variant
	Text     string // the property that must be missing or empty in some variants
	Move     Move   // the result of Settle, without the ID and the Group of a task
}

// A Variant is a value that the property Usual.By may have; "" means that the task must not have this property.
type Variant struct {
	Value string
	Empty bool // whether Usual.Text must be missing or empty
}

// UsualSuccess returns the most frequent kind of task: it has no end_before, no keep_finished, no keep_outputs and no
// links, and its program has ended in the first round with exit status 0. If fail_on makes stderr a failure, the
// program also printed nothing to stderr. The Move makes the task succeed.
func UsualSuccess() Usual {
	t := Task{Properties: Defaults("", "", ""), State: Executed, Rounds: Rounds{0: {
		Entered: map[State]Time{Executed: 1}, Claim: "any", Exit: "0", Committed: true,
	}}}
	m, _ := t.Settle(1, nil)
	return Usual{
		Equal: []Field{
			{fieldState, string(Executed)},
			{fieldRound, "0"},
			{fieldEndBefore, t.EndBefore.String()},
			{RoundField(0, RoundExit), "0"},
		},
		Missing: []string{fieldKeepFinished, fieldKeepOutputs, fieldLinks},
		Filled:  []string{RoundField(0, RoundClaim)},
		By:      fieldFailOn,
		Variants: []Variant{
			{"", true},
			{string(FailOnExit), false},
			{string(FailOnAny), true},
		},
		Text: RoundField(0, RoundError),
		Move: m,
	}
}
