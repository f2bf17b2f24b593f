package rules

import (
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf/internal/task"
)

// A Verb is the name of a transition. Code, logs, tests and docs use the same names.
type Verb string

// The verbs, in the order of [Transitions]. Users retry tasks (reopen) and requeue them (release).
const (
	VerbOpen    Verb = "open"
	VerbClaim   Verb = "claim"
	VerbExecute Verb = "execute"
	VerbSucceed Verb = "succeed"
	VerbFail    Verb = "fail"
	VerbTimeOut Verb = "time out"
	VerbExpire  Verb = "expire"
	VerbArchive Verb = "archive"
	VerbLose    Verb = "lose"
	VerbRelease Verb = "release"
	VerbUnclaim Verb = "unclaim"
	VerbReject  Verb = "reject"
	VerbCancel  Verb = "cancel"
	VerbReopen  Verb = "reopen"
	VerbChange  Verb = "change"
	VerbRescore Verb = "rescore"
	VerbUnblock Verb = "unblock"
	VerbRemove  Verb = "remove"
	VerbReplace Verb = "replace"
)

// An Actor is a component that makes transitions.
type Actor string

// The actors.
const (
	Manager Actor = "manager"
	Worker  Actor = "worker"
	Server  Actor = "server"
)

// A Transition is one row of [Transitions].
type Transition struct {
	Verb     Verb
	From     []task.State
	To       task.State
	By       []Actor
	Counts   task.Counter // the counter that the transition raises; "" if it raises no counter
	NewRound bool         // whether the round ends and the next one begins
}

// The states of tasks that have ended, before and after their results were handled.
var (
	settled  = []task.State{task.Succeeded, task.Failed, task.TimedOut, task.Expired}
	finished = append(settled[:4:4], task.Archived)
)

// Transitions is the complete table of permitted transitions (docs/lifecycle.md, "Transitions").
var Transitions = []Transition{
	{VerbOpen, []task.State{task.None}, task.Open, []Actor{Manager}, "", false},
	{VerbClaim, []task.State{task.Open}, task.Running, []Actor{Worker}, "", false},
	{VerbExecute, []task.State{task.Running}, task.Executed, []Actor{Worker}, "", false},
	{VerbSucceed, []task.State{task.Executed}, task.Succeeded, []Actor{Server, Worker}, "", false},
	{VerbFail, []task.State{task.Executed}, task.Open, []Actor{Server, Worker}, task.Fails, true},
	{VerbFail, []task.State{task.Executed}, task.Failed, []Actor{Server, Worker}, task.Fails, false},
	{VerbTimeOut, []task.State{task.Running}, task.Open, []Actor{Server, Worker}, task.Timeouts, true},
	{VerbTimeOut, []task.State{task.Running}, task.TimedOut, []Actor{Server, Worker}, task.Timeouts, false},
	{VerbExpire, []task.State{task.Open, task.Running, task.Executed}, task.Expired, []Actor{Server, Worker}, "", false},
	{VerbArchive, settled, task.Archived, []Actor{Manager}, "", false},
	{VerbLose, []task.State{task.Running}, task.Open, []Actor{Server}, task.Losses, true},
	{VerbLose, []task.State{task.Running}, task.Failed, []Actor{Server}, task.Losses, false},
	{VerbRelease, []task.State{task.Running}, task.Open, []Actor{Worker, Manager}, task.Releases, true},
	{VerbUnclaim, []task.State{task.Running}, task.Open, []Actor{Worker, Server}, task.Revisions, false},
	{VerbReject, []task.State{task.Open}, task.Failed, []Actor{Server}, "", false},
	{VerbCancel, []task.State{task.Open, task.Running}, task.Expired, []Actor{Manager}, "", false},
	{VerbReopen, finished, task.Open, []Actor{Manager}, task.Reopens, true},
	{VerbChange, []task.State{task.Open}, task.Open, []Actor{Manager}, task.Revisions, false},
	{VerbRescore, []task.State{task.Open}, task.Open, []Actor{Server}, "", false},
	{VerbUnblock, []task.State{task.Open}, task.Open, []Actor{Server}, "", false},
	{VerbRescore, []task.State{task.Running}, task.Running, []Actor{Server}, "", false},
	{VerbRemove, finished, task.None, []Actor{Manager, Server}, "", false},
	{VerbReplace, []task.State{task.Open}, task.None, []Actor{Manager}, "", false},
}

// findTransition returns the row for a verb and two states.
func findTransition(v Verb, from, to task.State) (Transition, bool) {
	for _, tr := range Transitions {
		if tr.Verb == v && tr.To == to && slices.Contains(tr.From, from) {
			return tr, true
		}
	}
	return Transition{}, false
}

// A StateError means that the transition is not permitted in the task's state, or that the task is no longer in the
// expected round. The task has not been changed.
type StateError struct {
	ID    int64
	Verb  Verb
	State task.State // the state of the task; None if the task does not exist
	Round int        // the round of the task

	Revision int // the revision of the task, if the move required a revision; otherwise 0
}

func (e *StateError) Error() string {
	if e.State == task.None {
		return fmt.Sprintf("%s task %d: there is no such task", e.Verb, e.ID)
	}
	text := fmt.Sprintf("%s task %d: it is %s in round %d", e.Verb, e.ID, e.State, e.Round)
	if e.Revision > 0 {
		text += fmt.Sprintf(", revision %d", e.Revision)
	}
	return text
}

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (e *StateError) Code() task.Code {
	if e.State == task.None {
		return task.CodeNotFound
	}
	return task.CodeConflict
}
