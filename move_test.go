package tdf

import (
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// A guard names the version of the task, and writes nothing.
func TestRequire(t *testing.T) {
	for _, state := range States {
		task := &Task{ID: 7, State: state, Round: 2, Revision: 3}
		expect.Equal(t, task.Require().Claim, NoClaim, state, "a task without a claim")
		task.Rounds = Rounds{2: {Claim: "c"}}
		m := task.Require()
		if m.ID != 7 || m.Verb != VerbRequire || m.From != state || m.To != state || m.Round != 2 || m.Next != 2 || m.Revision != "3" || m.Claim != "c" {
			t.Errorf("%s: %+v", state, m)
		}
		expect.True(t, len(m.Set)+len(m.Stamp)+len(m.Clear) == 0 && m.Note == "", state, "the guard writes", m)
	}
}

func TestIfUnchanged(t *testing.T) {
	task := &Task{State: Open, Revision: 12}
	m, err := task.Cancel()
	expect.True(t, err == nil && m.Revision == "" && m.IfUnchanged(task).Revision == "12", m, err)
}
