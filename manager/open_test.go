package manager_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/manager/managertest"
)

func TestOpenChecksAllBeforeItOpensAny(t *testing.T) {
	tm, _ := newTester(t)
	m := tm.Manager
	bad := m.Define("p", "ftp://example.org/run.sh", "")
	ids, err := m.Open(t.Context(), m.Define("p", source, "fine"), bad)
	if e := new(tdf.PropertyError); !errors.As(err, &e) || e.Property != "source" {
		t.Errorf("got %v, want a *PropertyError about the source", err)
	}
	if len(ids) != 0 || len(tm.Tasks()) != 0 {
		t.Errorf("opened %v", ids)
	}
}

func TestDefineFillsInTheDefaults(t *testing.T) {
	cfg := testConfig(t)
	cfg.TaskDefaults.Timeout, cfg.TaskDefaults.Group = 12, "g"
	d := managertest.NewWith(t, cfg).Manager.Define("p", source, "1 2")
	want := cfg.TaskDefaults
	want.Program, want.Source, want.Input = "p", source, "1 2"
	if d != want {
		t.Errorf("got %+v, want %+v", d, want)
	}
}

func TestRandomStartOffset(t *testing.T) {
	cfg := testConfig(t)
	cfg.AddRandomStartOffset = true
	tm := managertest.NewWith(t, cfg)
	m, now := tm.Manager, tdf.At(tm.Now())
	past, future, soon := m.Define("p", source, ""), m.Define("p", source, ""), m.Define("p", source, "")
	past.StartAfter = 7
	future.StartAfter = now + 100
	soon.StartAfter, soon.EndBefore = now+100, now+100.0001
	different := map[tdf.Time]bool{}
	for range 20 {
		if _, err := m.Open(t.Context(), past, future, soon); err != nil {
			t.Fatal(err)
		}
	}
	for i, task := range tm.Tasks() {
		from := []tdf.Time{now, now + 100, now + 100}[i%3]
		offset := float64(task.StartAfter-from) * 1000
		if offset < -0.01 || offset > 999.01 || math.Abs(offset-math.Round(offset)) > 0.01 {
			t.Errorf("task %d has an offset of %v ms", task.ID, offset)
		}
		if i%3 == 2 && offset > 0.01 {
			t.Errorf("task %d has an offset of %v ms, which leaves it no time", task.ID, offset)
		}
		different[task.StartAfter] = true
	}
	if len(different) < 10 {
		t.Errorf("only %d different moments", len(different))
	}
	checkFollowUpsAreScattered(t, tm)
}

func checkFollowUpsAreScattered(t *testing.T, tm *managertest.Tester) {
	t.Helper()
	tm.Program("p", func(managertest.Run) managertest.Result { return managertest.Result{} })
	before := len(tm.Tasks())
	first := true
	run(t, tm.Manager, manager.Callbacks{
		Succeeded: func(_ context.Context, task *manager.Task) error {
			for range 20 {
				if first {
					task.Open(tm.Manager.Define("p", source, ""))
				}
			}
			first = false
			return nil
		},
	})
	scattered := 0
	for _, task := range tm.Tasks()[before:] {
		if task.StartAfter > 0 {
			scattered++
		}
	}
	if scattered != 20 {
		t.Errorf("%d of 20 follow-ups have an offset", scattered)
	}
}
