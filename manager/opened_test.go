package manager

import (
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// A task that Open returns has the same content as one that is read.
func TestOpenedTasks(t *testing.T) {
	plain := task.Defaults("count", "rsync:/srv/count/run.sh", "1 2")
	later, waits, limited := plain, plain, plain
	later.StartAfter = 2e9
	waits.After = &tdf.Dependencies{Tasks: []int64{7}}
	limited.LimitKey, limited.Tags, limited.Priority, limited.MaxFails = "db", []string{"gpu"}, 3, 2
	all := []task.Properties{plain, later, waits, limited}
	for len(all) <= newTasksAtOnce {
		all = append(all, all...)
	}
	for i, opened := range openedTasks(all) {
		opened.setOpened(int64(i+1), false, nil)
		read := TaskOf(&task.Task{
			ID: int64(i + 1), Properties: all[i], State: tdf.Open, PlacedIn: all[i].FirstPlace(), Rounds: task.Rounds{0: {}},
		}, true)
		expect.Equal(t, opened.Stored(), read.Stored())
		opened.stored, opened.opened = read.stored, nil
		expect.Equal(t, opened, read)
	}
}
