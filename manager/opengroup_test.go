package manager_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
)

func inGroup(n int, group string) []manager.Definition {
	return many(n, func(i int, d *manager.Definition) { d.Group, d.Input = group, fmt.Sprint(i) })
}

// OpenGroup continues an interrupted call in another manager, and opens no task twice.
func TestOpenGroupContinues(t *testing.T) {
	t.Parallel()
	cfg := testspace.Config(t, redistest.Shared(t))
	client := testspace.Client(t, cfg)
	open := func(n int) ([]*manager.Task, error) {
		return testspace.Manager(t, cfg).OpenGroup(t.Context(), inGroup(n, "g")...)
	}
	limit := func(n string) { client.HSet(t.Context(), cfg.Namespace+":settings", "max_tasks", n) }
	limit("600")
	first, err := open(700)
	expect.MustTrue(t, errors.As(err, new(*tdf.TasksLimitError)), err)
	expect.Len(t, first, 500)
	limit("inf")
	expect.Result(open(499)).FailsWith(t, manager.ErrOtherRequest, "fewer tasks than are open")
	expect.Result(open(500)).FailsWith(t, manager.ErrOtherRequest, "only the tasks that are open")
	others := inGroup(700, "g")
	others[3].Input = "another"
	expect.Result(testspace.Manager(t, cfg).OpenGroup(t.Context(), others...)).FailsWith(t, manager.ErrOtherRequest, "another definition")
	rest := expect.Result(open(700)).Value(t)
	expect.MustLen(t, rest, 200)
	expect.Equal(t, rest[0].Input, "500")
	expect.Result(open(700)).FailsWith(t, manager.ErrGroupTaken, "a complete group")
	m := testspace.Manager(t, cfg)
	expect.Equal(t, expect.Result(m.Counts(t.Context(), "g")).Value(t).Total(), 700)
	expect.Equal(t, client.HLen(t.Context(), cfg.Namespace+":pipelines").Val(), 0, "records of a complete group")
	place := 0
	for task, err := range m.List(t.Context(), manager.Query{Group: "g", Order: manager.ByID}) {
		expect.NoError(t, err)
		expect.Equal(t, task.Input, fmt.Sprint(place))
		place++
	}
}

// If the first tasks of a group were removed after an interrupted call, the next call opens only the rest.
func TestOpenGroupAfterRemoval(t *testing.T) {
	t.Parallel()
	cfg := testspace.Config(t, redistest.Shared(t))
	client, m := testspace.Client(t, cfg), testspace.Manager(t, cfg)
	limit := func(n string) { client.HSet(t.Context(), cfg.Namespace+":settings", "max_tasks", n) }
	limit("600")
	first, err := m.OpenGroup(t.Context(), inGroup(700, "g")...)
	expect.MustTrue(t, errors.As(err, new(*tdf.TasksLimitError)), err)
	ids := make([]int64, len(first))
	for i, task := range first {
		ids[i] = task.ID
	}
	expect.Result(m.Cancel(t.Context(), manager.ByIDs(ids...)...)).OK(t)
	expect.Equal(t, expect.Result(m.Remove(t.Context(), manager.ByIDs(ids...)...)).Value(t).Done, 500)
	limit("inf")
	other := testspace.Manager(t, cfg)
	_, err = other.OpenGroup(t.Context(), inGroup(3, "g")...)
	expect.FailsWith(t, err, manager.ErrOtherRequest)
	expect.Fails(t, err, "choose another group")
	rest := expect.Result(other.OpenGroup(t.Context(), inGroup(700, "g")...)).Value(t)
	expect.MustLen(t, rest, 200)
	expect.Equal(t, rest[0].Input, "500")
}

// The first step of a large group counts for max_tasks, as all others do.
func TestOpenGroupAboveMaxTasks(t *testing.T) {
	t.Parallel()
	cfg := testspace.Config(t, redistest.Shared(t))
	testspace.Client(t, cfg).HSet(t.Context(), cfg.Namespace+":settings", "max_tasks", "100")
	m := testspace.Manager(t, cfg)
	_, err := m.OpenGroup(t.Context(), inGroup(300, "g")...)
	expect.MustTrue(t, errors.As(err, new(*tdf.TasksLimitError)), err)
	expect.Contains(t, err.Error(), "with 250 tasks, the namespace would exceed its setting max_tasks, which is 100")
	expect.Equal(t, expect.Result(m.Counts(t.Context())).Value(t).Total(), 0)
}

// The first step of a large group waits while Redis uses too much memory, as all others do.
func TestOpenGroupWaitsForMemory(t *testing.T) {
	t.Parallel()
	_, m, log, highWater := limited(t)
	highWater("0.001")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { _, err := m.OpenGroup(ctx, inGroup(300, "g")...); ended <- err }()
	eventually(t, "the group waits for memory", func() bool { return log.Count("new tasks wait, because redis") > 0 })
	cancel()
	expect.Fails(t, <-ended, "memory")
	expect.Equal(t, expect.Result(m.Counts(t.Context())).Value(t).Total(), 0)
}

// Managers that open the same group at the same time open each task once.
func TestOpenGroupAtTheSameTime(t *testing.T) {
	t.Parallel()
	cfg := testspace.Config(t, redistest.Shared(t))
	var calls sync.WaitGroup
	for range 4 {
		m := testspace.Manager(t, cfg)
		calls.Go(func() {
			if _, err := m.OpenGroup(t.Context(), inGroup(1100, "g")...); err != nil {
				expect.FailsWith(t, err, manager.ErrGroupTaken)
			}
		})
	}
	calls.Wait()
	expect.Equal(t, expect.Result(testspace.Manager(t, cfg).Counts(t.Context(), "g")).Value(t).Total(), 1100)
}

// All tasks belong to one group.
func TestOpenGroupRefuses(t *testing.T) {
	t.Parallel()
	m := testspace.Manager(t, testspace.Config(t, redistest.Shared(t)))
	mixed, none, waits, cycle := inGroup(2, "g"), inGroup(2, "g"), inGroup(251, "g"), inGroup(2, "g")
	mixed[1].Group, none[1].Group = "h", ""
	waits[0].After = &manager.Dependencies{Places: []int{1}}
	for want, definitions := range map[string][]manager.Definition{
		"no definitions": nil, `"h" and the first one "g"`: mixed, `definition 1 has the group ""`: none,
	} {
		expect.Result(m.OpenGroup(t.Context(), definitions...)).Fails(t, want)
		expect.Result(managing.Of(m).OpenFirst(t.Context(), definitions...)).Fails(t, want)
	}
	expect.Result(m.OpenGroup(t.Context(), waits...)).Fails(t, "OpenOnce")
	for i := range cycle {
		cycle[i].After = &manager.Dependencies{Places: []int{1 - i}}
	}
	expect.Result(m.OpenGroup(t.Context(), cycle...)).Fails(t, "0 → 1 → 0")
	expect.Equal(t, expect.Result(m.Counts(t.Context())).Value(t).Total(), 0)
}
