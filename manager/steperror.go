package manager

import (
	"fmt"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
)

// A StepError means that a step was refused, and that nothing of it has happened. It lists all reasons.
type StepError struct {
	// Changed are the tasks that have changed since the caller read them. Read these tasks again, and make a new step.
	Changed []ChangedTask
	// Causes are the other reasons. A *[tdf.StateError] means that an action is not possible in the state of its task,
	// and a *[tdf.UniqueError] means that another task holds the unique key of a retried task. A *[tdf.GroupError]
	// means that a group is closed, or that its completion cannot be decided.
	Causes []error
}

// A ChangedTask is a task that has changed since the caller read it.
type ChangedTask struct {
	ID     int64
	Action rules.Verb // the action of the step; for [Step.Require], it is task.VerbRequire
	Wanted Version    // the version that the caller read
	Found  Version    // the present version
}

// A Version identifies a version of a task. Each transition and each change of a task makes a new version.
type Version struct {
	State    tdf.State // task.None if there is no such task
	Round    int
	Revision int

	claim string // after a failover of Redis, another claim may have run the same round
}

func (c ChangedTask) String() string {
	if c.Wanted.String() == c.Found.String() {
		return fmt.Sprintf("task %d has changed: it is %v, but another claim has run the round", c.ID, c.Found)
	}
	return fmt.Sprintf("task %d has changed: want %v, found %v", c.ID, c.Wanted, c.Found)
}

func (v Version) String() string {
	if v.State == task.None {
		return "no such task"
	}
	text := fmt.Sprintf("%s in round %d", v.State, v.Round)
	if v.Revision > 0 {
		text += fmt.Sprintf(", revision %d", v.Revision)
	}
	return text
}

func versionOf(t *task.Task) Version {
	if t == nil {
		return Version{State: task.None}
	}
	return Version{t.State, t.Round, t.Revision, t.Current().Claim}
}

// maxReasons is the largest number of reasons in the text of an error.
const maxReasons = 10

func (e *StepError) Error() string {
	var reasons []string
	for _, c := range e.Changed {
		reasons = append(reasons, c.String())
	}
	for _, cause := range e.Causes {
		reasons = append(reasons, cause.Error())
	}
	if more := len(reasons) - maxReasons; more > 0 {
		reasons = append(reasons[:maxReasons], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(reasons, "; ")
}

// Code returns the error's code (docs/manager.md, "Codes of errors"). Without changed tasks, it is the code of the
// first cause.
func (e *StepError) Code() tdf.Code {
	if len(e.Changed) > 0 || len(e.Causes) == 0 {
		return tdf.CodeConflict
	}
	return tdf.CodeOf(e.Causes[0])
}

// Unwrap returns the Causes.
func (e *StepError) Unwrap() []error { return e.Causes }

// compare reports whether a task has the version that the caller read. If not, it adds the task to Changed.
func (e *StepError) compare(a stepAction, found *task.Task) bool {
	unchanged := versionOf(found) == versionOf(a.task.Stored())
	if !unchanged {
		e.changed(a, versionOf(found))
	}
	return unchanged
}

func (e *StepError) changed(a stepAction, found Version) {
	e.Changed = append(e.Changed, ChangedTask{a.task.ID, a.Verb, versionOf(a.task.Stored()), found})
}

func (e *StepError) orNil() error {
	if len(e.Changed)+len(e.Causes) == 0 {
		return nil
	}
	return e
}
