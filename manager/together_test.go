package manager_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
)

// Callers of one manager share calls to Redis. Each gets its own tasks and its own errors.
func TestCallersShareCalls(t *testing.T) {
	const callers, each = 16, 50
	cfg := testspace.Config(t, redistest.Shared(t))
	rights := testspace.Client(t, cfg)
	m := testspace.Manager(t, cfg)
	expect.NoError(t, m.Connect(t.Context()))
	closed := testspace.Define("p", "https://example.org/run.sh", "")
	closed.Group = "closed"
	expect.Result(m.Open(t.Context(), closed)).OK(t)
	expect.NoError(t, m.CloseGroup(t.Context(), "closed"))
	before := expect.Result(rights.DBSize(t.Context()).Result()).Value(t)
	var mu sync.Mutex
	found := map[int64]string{}
	var at sync.WaitGroup
	for c := range callers {
		at.Go(func() {
			last := int64(0)
			for i := range each {
				d := testspace.Define("p", "https://example.org/run.sh", fmt.Sprintf("%d/%d", c, i))
				if c == 0 { // this caller's tasks are all refused
					d.Group = "closed"
				}
				tasks, err := m.Open(t.Context(), d)
				if c == 0 {
					expect.FailsWith(t, err, tdf.ErrGroupClosed)
					expect.Len(t, tasks, 0)
					continue
				}
				if err != nil || len(tasks) != 1 || tasks[0].ID <= last {
					t.Errorf("got %v and error %v after id %d", tasks, err, last)
					return
				}
				last = tasks[0].ID
				mu.Lock()
				found[last] = d.Input
				mu.Unlock()
			}
		})
	}
	at.Wait()
	n := expect.Result(rights.DBSize(t.Context()).Result()).Value(t)
	expect.MustLen(t, found, (callers-1)*each)
	expect.MustTrue(t, n-before >= int64(len(found)), "opened", len(found), "tasks, and Redis has", n-before, "new keys")
	for task, err := range m.List(t.Context(), manager.Query{States: []tdf.State{tdf.Open}}) {
		expect.NoError(t, err)
		if task.Group == "" {
			expect.Equal(t, task.Input, found[task.ID], "task", task.ID)
		}
	}
}

// Callers that cancel the same tasks do not disturb each other: one changes a task, and the others skip it.
func TestCallersThatCancelTheSameTasks(t *testing.T) {
	m := testspace.Manager(t, testspace.Config(t, redistest.Shared(t)))
	tasks := expect.Result(m.Open(t.Context(), many(100, func(int, *manager.Definition) {})...)).Value(t)
	var done, skipped atomic.Int64
	var at sync.WaitGroup
	for range 4 {
		at.Go(func() {
			for _, task := range tasks {
				result, err := m.Cancel(t.Context(), task.Ref())
				expect.True(t, err == nil, err)
				done.Add(int64(result.Done))
				for _, why := range result.Skipped {
					skipped.Add(1)
					expect.Contains(t, why.Error(), "expired")
				}
			}
		})
	}
	at.Wait()
	expect.Equal(t, done.Load(), 100)
	expect.Equal(t, skipped.Load(), 300)
}
