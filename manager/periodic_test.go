package manager_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
)

// A manager stores a periodic once, however often it starts. Users pause, resume, run and remove it.
func TestPeriodic(t *testing.T) {
	t.Parallel()
	for name, addr := range map[string]string{"embedded": testspace.Embedded(t), "real": redistest.Shared(t)} {
		t.Run(name, func(t *testing.T) { testPeriodic(t, addr) })
	}
}

func testPeriodic(t *testing.T, addr string) {
	cfg := redisConfig(t, addr)
	cfg.TaskDefaults.MaxFails = 7
	m, ctx := newManager(t, cfg, func(o *manager.Options) { o.Name = "ann" }), t.Context()
	p := manager.Periodic{
		Name: "nightly", Schedule: "30 3 * * *", Zone: "Europe/Berlin",
		Tasks: []manager.Definition{define("p", "rsync:/p/run.sh", "1"), define("q", "", "2")},
	}
	is := func() *manager.PeriodicRecord {
		t.Helper()
		all := expect.Result(m.Periodics().All(ctx)).Value(t)
		expect.MustLen(t, all, 1)
		return all[0]
	}
	expect.NoError(t, m.Periodics().Set(ctx, p))
	first := is()
	expect.Equal(t, first.Next.Std().UTC().Minute(), 30)
	expect.Equal(t, first.Properties()[1].MaxFails, 7)
	expect.Equal(t, first.Overlap, task.OverlapSkip)
	expect.Equal(t, first.Missed, task.MissedLast)

	ids := expect.Result(m.Periodics().Run(ctx, "nightly")).Value(t)
	expect.Equal(t, ids, []int64{1, 2})
	expect.NoError(t, m.Periodics().Pause(ctx, "nightly"))
	expect.NoError(t, m.Periodics().Pause(ctx, "nightly"))
	expect.Equal(t, expect.Result(m.Periodics().Run(ctx, "nightly")).Value(t), []int64{3, 4})
	ran := is()
	expect.Equal(t, ran.IDs, []int64{3, 4, 1, 2})
	expect.Equal(t, ran.Next, first.Next)
	expect.Equal(t, ran.Last.Outcome, task.PeriodicOpened)
	expect.Equal(t, ran.Last.Why, "by ann")
	expect.Equal(t, ran.PausedBy, "ann")
	expect.Contains(t, fmt.Sprint(expect.Result(m.Get(ctx, 3)).Value(t).Log), "ann: open")

	expect.NoError(t, m.Periodics().Set(ctx, p))
	expect.Equal(t, is().String(), ran.String())
	p.Tasks = p.Tasks[:1]
	expect.NoError(t, m.Periodics().Set(ctx, p))
	expect.Len(t, is().Tasks, 1)
	expect.Equal(t, is().Next, first.Next)
	expect.Equal(t, is().PausedBy, "ann")
	p.Schedule = "@every 5000h"
	expect.NoError(t, m.Periodics().Set(ctx, p))
	expect.NotEqual(t, is().Next, first.Next)
	expect.NoError(t, m.Periodics().Resume(ctx, "nightly"))
	expect.Equal(t, is().PausedBy, "")

	expect.Equal(t, expect.Result(m.Periodics().Get(ctx, "nightly")).Value(t).String(), is().String())
	_, err := m.Periodics().Get(ctx, "none")
	expect.FailsWith(t, err, manager.ErrNoPeriodic)
	expect.FailsWith(t, m.Periodics().Pause(ctx, "none"), manager.ErrNoPeriodic)
	expect.FailsWith(t, m.Periodics().Resume(ctx, "none"), manager.ErrNoPeriodic)
	expect.FailsWith(t, m.Periodics().Remove(ctx, "none"), manager.ErrNoPeriodic)
	_, err = m.Periodics().Run(ctx, "none")
	expect.FailsWith(t, err, manager.ErrNoPeriodic)
	for change, want := range map[string]string{
		"program": "task 1 of 1: program: is empty", "source": "it is not stored", "schedule": "schedule: ",
		"none": "want 1 to 250",
	} {
		bad := p
		bad.Name, bad.Tasks = "bad", []manager.Definition{p.Tasks[0]}
		switch change {
		case "program":
			bad.Tasks[0].Program = ""
		case "source":
			bad.Tasks[0].Source = "redis:" + strings.Repeat("0", 64)
		case "schedule":
			bad.Schedule = "0 0 31 2 *"
		case "none":
			bad.Tasks = nil
		}
		expect.Fails(t, m.Periodics().Set(ctx, bad), want)
	}
	expect.NoError(t, m.Periodics().Remove(ctx, "nightly"))
	expect.Len(t, expect.Result(m.Periodics().All(ctx)).Value(t), 0)

	var all sync.WaitGroup
	for n := range 20 { // managers that start at the same time
		all.Go(func() {
			p := p
			p.Name = fmt.Sprint("p", n%2)
			expect.NoError(t, m.Periodics().Set(ctx, p))
		})
	}
	all.Wait()
	expect.Len(t, expect.Result(m.Periodics().All(ctx)).Value(t), 2)
	fields := []any{}
	for n := range task.MaxPeriodics {
		fields = append(fields, fmt.Sprint("more", n), "{")
	}
	expect.NoError(t, client(t, cfg).HSet(ctx, cfg.Namespace+":periodic", fields...).Err())
	p.Name = "one more"
	expect.Fails(t, m.Periodics().Set(ctx, p), "there are 1002 already")
	p.Name = "p0"
	expect.NoError(t, m.Periodics().Set(ctx, p))
	known, err := m.Periodics().All(ctx)
	expect.Len(t, known, 2)
	expect.Fails(t, err, `periodic "more0"`)
	expect.NoError(t, m.Periodics().Remove(ctx, "more0"))
}
