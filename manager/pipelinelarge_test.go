package manager_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
)

// runUntil runs a pipeline until ok returns true.
func runUntil(t *testing.T, p *manager.Pipeline, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	var running sync.WaitGroup
	running.Go(func() {
		expect.FailsWith(t, p.Run(ctx), stop)
	})
	expect.Eventually(t, "the pipeline goes on", ok)
	cancel(stop)
	running.Wait()
}

// checkInOrder checks that a group has the tasks with the inputs 0 to n-1 in order, each with the given beginning.
func checkInOrder(t *testing.T, m *manager.Manager, group, beginning string, n int) {
	t.Helper()
	found := 0
	for one, err := range m.List(t.Context(), manager.Query{Group: group, Order: manager.ByID}) {
		must(t, err)
		want := beginning + strconv.Itoa(found)
		expect.MustTrue(t, one.Input == want, "task", one.ID, "has the input", one.Input, "want", want)
		found++
	}
	expect.Equal(t, found, n, "tasks")
}

// checkFirst checks that the first n tasks of the namespace have the inputs 0 to n-1. The embedded Redis lists the tasks of a
// large group too slowly for checkInOrder.
func checkFirst(t *testing.T, cfg config.Manager, n int) {
	t.Helper()
	client := testspace.Client(t, cfg)
	for first := 0; first < n; first += 1000 {
		p := client.Pipeline()
		for i := range min(1000, n-first) {
			p.HGet(t.Context(), fmt.Sprintf("%s:task:%d", cfg.Namespace, first+i+1), "input")
		}
		replies := expect.Result(p.Exec(t.Context())).Value(t)
		for i, r := range replies {
			expect.MustEqual(t, r.(*redis.StringCmd).Val(), strconv.Itoa(first+i), "task", first+i+1, "has the input")
		}
	}
	expect.Equal(t, client.Get(t.Context(), cfg.Namespace+":task_id").Val(), strconv.Itoa(n), "the last task", n)
}

// isOpened returns a function that reports whether all tasks of a stage are open. It costs Redis less than a GroupStatus.
func isOpened(t *testing.T, cfg config.Manager, stage string) func() bool {
	client := testspace.Client(t, cfg)
	return func() bool {
		return client.HGet(t.Context(), cfg.Namespace+":pipelines", stage).Val() == string(task.StageOpened)
	}
}

// Start opens many tasks in chunks, and a function of After can open more tasks than one step. All tasks of After belong to
// one call of the function. If TDF_SOAK is set, there are 100,000 tasks.
func TestSoakManyTasksOfStages(t *testing.T) {
	t.Parallel()
	n := 2_500
	if os.Getenv("TDF_SOAK") != "" {
		n = 100_000
	}
	cfg := redisConfig(t, redistest.Shared(t))
	watch := newManager(t, cfg)
	p := newManager(t, cfg).Pipeline("p")
	p.Start("a", func(_ context.Context, s *manager.Stage) error {
		for i := range n {
			s.Open(define("p", source, strconv.Itoa(i)))
		}
		return nil
	})
	runUntil(t, p, isOpened(t, cfg, "p/a"))
	checkFirst(t, cfg, n)

	first, kind := true, "x"
	pipeline := func() *manager.Pipeline {
		p := newManager(t, cfg).Pipeline("q")
		p.Start("a", opens("1"))
		p.After("a", "b", func(_ context.Context, b *manager.Stage) error {
			for i := range 2500 {
				b.Open(define("p", source, kind+strconv.Itoa(i)))
			}
			if first {
				first = false
				return errors.New("out of luck")
			}
			kind = "y"
			return nil
		})
		return p
	}
	runUntil(t, pipeline(), isOpened(t, cfg, "q/a"))
	expect.Result(watch.CancelOpen(t.Context(), "q/a")).OK(t)
	runUntil(t, pipeline(), isOpened(t, cfg, "q/b"))
	checkInOrder(t, watch, "q/b", "x", 2500)
	client := testspace.Client(t, cfg)
	expect.Len(t, client.Keys(t.Context(), cfg.Namespace+":definitions:*").Val(), 0, "stored definitions are left")
	records := client.HGetAll(t.Context(), cfg.Namespace+":pipelines").Val()
	expect.Len(t, records, 3)
	expect.Equal(t, records["q/b"], string(task.StageOpened))
}

// The record of a stage whose tasks wait until they can be opened names their stored programs, so that these stay.
func TestStagesNameTheirPrograms(t *testing.T) {
	t.Parallel()
	cfg := redisConfig(t, redistest.Shared(t))
	m := newManager(t, cfg)
	stored := expect.Result(managing.Of(m).Store.Programs.PutProgram(t.Context(), []byte("archive"))).Value(t)
	client := testspace.Client(t, cfg)
	must(t, client.HSet(t.Context(), cfg.Namespace+":settings", "max_tasks", "1").Err())
	p := m.Pipeline("p")
	p.Start("a", nothing)
	p.After("a", "b", func(_ context.Context, b *manager.Stage) error {
		for i := range 2500 {
			b.Open(define("p", []string{source, stored}[i%2], strconv.Itoa(i)))
		}
		return nil
	})
	var record task.StageRecord
	runUntil(t, p, func() bool {
		record, _ = task.ParseStageRecord(client.HGet(t.Context(), cfg.Namespace+":pipelines", "p/b").Val())
		return record.Phase == task.StageStored
	})
	expect.Equal(t, record.StoredPrograms(), []string{strings.TrimPrefix(stored, "redis:")})
}

// If stored definitions are lost, the log says so, and the stage stays as it is.
func TestLostDefinitions(t *testing.T) {
	t.Parallel()
	cfg := redisConfig(t, redistest.Shared(t))
	client := testspace.Client(t, cfg)
	log := &logged{}
	must(t, client.HSet(t.Context(), cfg.Namespace+":pipelines", "p/a", "opened", "p/b", "stored 3 7 X").Err())
	p := newManager(t, cfg, log.option()).Pipeline("p")
	p.Start("a", nothing)
	p.After("a", "b", nothing)
	runUntil(t, p, func() bool { return log.Count("chunk 4: the stored definitions of the stage do not exist") > 0 })
	must(t, client.HSet(t.Context(), cfg.Namespace+":definitions:X", "3", "foreign").Err())
	runUntil(t, p, func() bool { return log.Count("read stored definitions: ") > 0 })
	must(t, client.HSet(t.Context(), cfg.Namespace+":pipelines", "p/b", "foreign").Err())
	runUntil(t, p, func() bool { return log.Count("invalid record") > 0 })
	must(t, client.HSet(t.Context(), cfg.Namespace+":pipelines", "p/b", "opening 5 ab").Err())
	runUntil(t, p, func() bool { return log.Count("its record says that it is the first stage") > 0 })
	expect.Equal(t, client.HGet(t.Context(), cfg.Namespace+":pipelines", "p/b").Val(), "opening 5 ab")
	expect.True(t, !strings.Contains(log.String(), "panic"), log.String())
}
