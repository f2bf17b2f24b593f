package look

import (
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// tdf ls marks a running task whose lease has ended.
func TestStateAfterTheLease(t *testing.T) {
	one, _ := task.ParseTask(1, task.Hash{"state": "running", "0:claim": "c", "lease_until": "2000000000"})
	view := manager.TaskOf(one, false)
	expect.Equal(t, stateAt(view, time.Unix(1999999999, 0))+", "+stateAt(view, time.Unix(2000000000, 0)), "running, running (lease ended)")
}
