package rules

import (
	"github.com/tdf-framework/tdf/internal/task"
)

// An Upkeep is one row of [Upkeeps]: a change of a task that is no transition. It begins no round, and only a repair
// changes the state of the task.
type Upkeep struct {
	Verb Verb
	From []task.State
	By   []Actor
}

// The verbs of [Upkeeps].
const (
	// VerbRepair makes an inconsistent task consistent.
	VerbRepair Verb = "repair"
	// VerbReschedule changes only the task's due time. The server uses it after it has checked the task and found
	// nothing to settle.
	VerbReschedule Verb = "look"
	// VerbRequire changes nothing. If the task has changed, Redis refuses this Move, and with it all Moves of its unit.
	VerbRequire Verb = "require"
	// VerbRemoveOutputs removes outputs of a finished task.
	VerbRemoveOutputs Verb = "remove outputs of"
	// VerbHold moves an open task to a place where it waits, because the limit of its key has no room, or because its
	// group is paused (claim.lua).
	VerbHold Verb = "hold"
	// VerbReturn moves a held task back (unhold.lua).
	VerbReturn Verb = "return"
)

// Upkeeps is the complete table of changes that are no transitions (docs/lifecycle.md, "Transitions"). Every verb is in
// this table or in [Transitions]. The scripts make the changes with the verbs hold and return without a [Move].
var Upkeeps = []Upkeep{
	{VerbRepair, task.States, []Actor{Server, Manager}},
	{VerbReschedule, task.States, []Actor{Server}},
	{VerbRequire, task.States, []Actor{Manager}},
	{VerbRemoveOutputs, finished, []Actor{Server}},
	{VerbHold, []task.State{task.Open}, []Actor{Worker}},
	{VerbReturn, []task.State{task.Open}, []Actor{Server}},
}
