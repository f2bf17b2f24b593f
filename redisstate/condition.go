package redisstate

import "strings"

// A Condition is a condition about a group, on which tasks are opened, in the notation of the scripts. "" is none.
type Condition string

// NewGroup is the condition that a group has no tasks. It is no condition if the name is "".
func NewGroup(name string) Condition { return conditionOf("=", name) }

// Unextended is the condition that a group was not extended since its first task was opened. It is no condition if the
// name is "".
func Unextended(name string) Condition { return conditionOf("+", name) }

func conditionOf(kind, group string) Condition {
	if group == "" {
		return ""
	}
	return Condition(kind + group)
}

func (c Condition) isNew() bool { return strings.HasPrefix(string(c), "=") }

// later returns the condition of the calls after the first one.
func (c Condition) later() Condition {
	if c.isNew() {
		return Unextended(string(c[1:]))
	}
	return c
}

// unmet returns the error if the condition does not hold.
func (c Condition) unmet() error {
	if c.isNew() {
		return ErrGroupTaken
	}
	return ErrGroupExtended
}
