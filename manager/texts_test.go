package manager_test

import (
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
)

// If an output was not read, the method Output panics. If it returned "" instead, the output would seem empty.
func TestFoundTasksDoNotPretend(t *testing.T) {
	t.Parallel()
	cfg := redisConfig(t, redistest.Shared(t))
	s := connect(t, cfg)
	m := newManager(t, cfg, testspace.Log(silent))
	ids := expect.Result(testspace.IDs(m.Open(t.Context(), define("p", source, "some input")))).Value(t)
	claimed, err := s.Claim(t.Context(), redisstate.ClaimRequest{Worker: "w", Most: 1, Lease: 60})
	expect.NoError(t, err)
	c := claimed.Claims[0]
	move, _ := c.Task.Execute(c.ID, tdf.Result{Output: "printed", Exit: "0"})
	expect.Result(s.Apply(t.Context(), "w", redisstate.Unit{Moves: []tdf.Move{move}})).OK(t)
	for task, err := range m.List(t.Context(), manager.Query{IDs: ids}) {
		expect.True(t, err == nil && task.Input == "some input", task, err)
		expect.Result(lastOutput(task)).FailsWith(t, tdf.ErrNotRead, "output")
	}
	for task, err := range m.List(t.Context(), manager.Query{IDs: ids, Read: manager.ReadOutput}) {
		if got, readErr := lastOutput(task); err != nil || readErr != nil || got != "printed" {
			t.Errorf("the result: %q, %v, %v", got, err, readErr)
		}
	}
	task, err := m.Get(t.Context(), ids[0])
	expect.True(t, err == nil && task.Output() == "printed", "the whole task", task, err)
}

// lastOutput returns the output of the last run. If the method Output panics, lastOutput returns the panic as an error.
func lastOutput(t *manager.Task) (text string, err error) {
	defer func() {
		if e, panicked := recover().(error); panicked {
			err = e
		}
	}()
	return t.Output(), nil
}
