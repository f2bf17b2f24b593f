package task

import (
	"fmt"
	"slices"
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

// A Counter is the name of a property that transitions raise by one.
type Counter string

// The counters. The sum of the first five counters depends on the number of the round (docs/lifecycle.md, "Rounds").
const (
	Fails     Counter = "fails"
	Timeouts  Counter = "timeouts"
	Losses    Counter = "losses"
	Releases  Counter = "releases"
	Reopens   Counter = "reopens"
	Revisions Counter = "revision"
)

// A Transition is one row of [Transitions].
type Transition struct {
	Verb     Verb
	From     []State
	To       State
	By       []Actor
	Counts   Counter // the counter that the transition raises; "" if it raises no counter
	NewRound bool    // whether the round ends and the next one begins
}

// Transitions is the complete table of permitted transitions (docs/lifecycle.md, "Transitions").
var Transitions = []Transition{
	{VerbOpen, []State{None}, Open, []Actor{Manager}, "", false},
	{VerbClaim, []State{Open}, Running, []Actor{Worker}, "", false},
	{VerbExecute, []State{Running}, Executed, []Actor{Worker}, "", false},
	{VerbSucceed, []State{Executed}, Succeeded, []Actor{Server, Worker}, "", false},
	{VerbFail, []State{Executed}, Open, []Actor{Server, Worker}, Fails, true},
	{VerbFail, []State{Executed}, Failed, []Actor{Server, Worker}, Fails, false},
	{VerbTimeOut, []State{Running}, Open, []Actor{Server, Worker}, Timeouts, true},
	{VerbTimeOut, []State{Running}, TimedOut, []Actor{Server, Worker}, Timeouts, false},
	{VerbExpire, []State{Open, Running, Executed}, Expired, []Actor{Server, Worker}, "", false},
	{VerbArchive, []State{Succeeded, Failed, TimedOut, Expired}, Archived, []Actor{Manager}, "", false},
	{VerbLose, []State{Running}, Open, []Actor{Server}, Losses, true},
	{VerbLose, []State{Running}, Failed, []Actor{Server}, Losses, false},
	{VerbRelease, []State{Running}, Open, []Actor{Worker, Manager}, Releases, true},
	{VerbUnclaim, []State{Running}, Open, []Actor{Worker, Server}, Revisions, false},
	{VerbReject, []State{Open}, Failed, []Actor{Server}, "", false},
	{VerbCancel, []State{Open, Running}, Expired, []Actor{Manager}, "", false},
	{VerbReopen, []State{Succeeded, Failed, TimedOut, Expired, Archived}, Open, []Actor{Manager}, Reopens, true},
	{VerbChange, []State{Open}, Open, []Actor{Manager}, Revisions, false},
	{VerbRescore, []State{Open}, Open, []Actor{Server}, "", false},
	{VerbUnblock, []State{Open}, Open, []Actor{Server}, "", false},
	{VerbRescore, []State{Running}, Running, []Actor{Server}, "", false},
	{VerbRemove, []State{Succeeded, Failed, TimedOut, Expired, Archived}, None, []Actor{Manager, Server}, "", false},
	{VerbReplace, []State{Open}, None, []Actor{Manager}, "", false},
}

// findTransition returns the row for a verb and two states.
func findTransition(v Verb, from, to State) (Transition, bool) {
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
	State State // the state of the task; None if the task does not exist
	Round int   // the round of the task

	Revision int // the revision of the task, if the move required a revision; otherwise 0
}

func (e *StateError) Error() string {
	if e.State == None {
		return fmt.Sprintf("%s task %d: there is no such task", e.Verb, e.ID)
	}
	text := fmt.Sprintf("%s task %d: it is %s in round %d", e.Verb, e.ID, e.State, e.Round)
	if e.Revision > 0 {
		text += fmt.Sprintf(", revision %d", e.Revision)
	}
	return text
}

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (e *StateError) Code() Code {
	if e.State == None {
		return CodeNotFound
	}
	return CodeConflict
}
