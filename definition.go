package tdf

import "github.com/tdf-framework/tdf/internal/task"

// A Definition says which program a task runs, when, and how often it may fail. If a field is zero, the task gets the
// value of the manager's TaskDefaults. If that value is zero too, it gets the default that docs/lifecycle.md names.
type Definition = task.Definition

// MaxInput is the maximum length of a task's input in bytes.
const MaxInput = task.MaxInput

// Dependencies name the tasks and the group that a task waits for before it runs (docs/lifecycle.md, "Dependencies").
type Dependencies = task.Dependencies

// Changes are new values for properties of a task. If a field is nil, its property keeps its value.
type Changes = task.Changes

// FailOn is the rule that decides whether a round has failed (docs/lifecycle.md, "What makes a round fail").
type FailOn = task.FailOn

// The rules for failure. Under each rule, a round has also failed if a signal ended its program, or if the program
// could not be run.
const (
	FailOnStderr = task.FailOnStderr // the round fails if the program printed something to stderr; this is the default
	FailOnExit   = task.FailOnExit   // the round fails if the exit status is not 0
	FailOnAny    = task.FailOnAny    // the round fails if there is text on stderr or if the exit status is not 0
)

// A Kind is the name of a program whose tasks have an input of type In and a result of type Out, both as JSON
// (docs/manager.md, "Typed tasks"). The manager and the worker share it:
//
//	const Lookup = tdf.Kind[Host, []string]("lookup")
//
// Its method Define returns the Definition of a task with an input.
type Kind[In, Out any] = task.Kind[In, Out]
