package task

import (
	"fmt"
)

// A GroupMark says whether a group is closed (docs/lifecycle.md, "Closed groups").
type GroupMark string

// The marks of a group.
const (
	GroupOpen    GroupMark = ""        // tasks can be opened in the group
	GroupClosed  GroupMark = "closed"  // no task can be opened, until the group is extended
	GroupDecided GroupMark = "decided" // no task can be opened: somebody has acted on the completion of the group
)

// The reasons of a [GroupError].
var (
	ErrGroupClosed = NewError(CodeConflict,
		"it is closed, so no task can be opened in it; extend it first (tdf open --extend)")
	ErrGroupDecided = NewError(CodeConflict,
		"its completion was already acted on, so no task can be opened in it; choose another group")
	ErrGroupNotClosed  = NewError(CodeConflict, "it is not closed, so it cannot be complete; close it first")
	ErrGroupUnfinished = NewError(CodeConflict, "it is not complete: some of its tasks are not finished")
	ErrGroupEmpty      = NewError(CodeNotFound, "it has no tasks")
)

// A GroupError means that the state of a group does not allow a call. The call has changed nothing.
type GroupError struct {
	Group string
	Err   error // ErrGroupClosed, ErrGroupDecided, ErrGroupNotClosed, ErrGroupUnfinished or ErrGroupEmpty
}

func (e *GroupError) Error() string { return fmt.Sprintf("group %q: %v", e.Group, e.Err) }

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (e *GroupError) Code() Code { return CodeOf(e.Err) }

func (e *GroupError) Unwrap() error { return e.Err }

// CheckOpening returns an error if no task can be opened in a group with this mark.
func (m GroupMark) CheckOpening() error {
	switch m {
	case GroupOpen:
		return nil
	case GroupDecided:
		return ErrGroupDecided
	}
	return ErrGroupClosed
}

// CheckDecision returns an error if nobody may act on the completion of a group with this mark, or if the group has
// unfinished tasks.
func (m GroupMark) CheckDecision(unfinished bool) error {
	switch {
	case m == GroupOpen:
		return ErrGroupNotClosed
	case m == GroupDecided:
		return ErrGroupDecided
	case unfinished:
		return ErrGroupUnfinished
	}
	return nil
}

// IsComplete reports whether a group is complete: it is closed, and all of its tasks are finished. The scripts link.lua
// (is_complete) and deciding.lua (refusal_of) repeat this rule, because they see the mark and the counts at one moment.
func (m GroupMark) IsComplete(c Counts) bool { return m != GroupOpen && c.Unfinished() == 0 }
