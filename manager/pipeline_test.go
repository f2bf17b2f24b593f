package manager_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/manager/managertest"
)

// inputs returns the inputs of the tasks of a group, in the order of their ids.
func inputs(tm *managertest.Tester, group string) string {
	var all []string
	for _, t := range tm.Tasks() {
		if t.Group == group {
			all = append(all, t.Input)
		}
	}
	return strings.Join(all, " ")
}

func opens(inputs ...string) manager.StageFunc {
	return func(_ context.Context, s *manager.Stage) error {
		for _, input := range inputs {
			s.Open(define("p", source, input))
		}
		return nil
	}
}

func nothing(context.Context, *manager.Stage) error { return nil }

// merges returns a function that opens one task with the outputs of all tasks of a stage.
func merges(p *manager.Pipeline, stage string) manager.StageFunc {
	return func(ctx context.Context, s *manager.Stage) error {
		var outputs []string
		for t, err := range p.Tasks(ctx, stage) {
			if err != nil {
				return err
			}
			outputs = append(outputs, fmt.Sprint(t.State, t.Output()))
		}
		s.Open(define("p", source, strings.Join(outputs, ",")))
		return nil
	}
}

func checkArchived(t *testing.T, tm *managertest.Tester, want int) {
	t.Helper()
	all, archived := len(tm.Tasks()), len(tm.In(tdf.Archived))
	expect.Equal(t, all, want, archived)
	expect.Equal(t, archived, want, all)
}

func TestPipeline(t *testing.T) {
	t.Parallel()
	tm, log := newTester(t)
	tm.Program("p", func(r managertest.Run) managertest.Result {
		n, _ := strconv.Atoi(r.Task.Input)
		return managertest.Result{Output: r.Task.Input, Exit: n % 2, Error: strings.Repeat("e", n%2)}
	})
	for _, want := range []int{1, 0} { // the second run finds the pipeline done
		p := tm.Manager.Pipeline("p")
		p.Start("a", opens("1", "2", "3", "4"))
		p.After("a", "b", merges(p, "a"))
		p.After("b", "c", merges(p, "b"))
		last := 0
		p.After("c", "", func(ctx context.Context, _ *manager.Stage) error { last++; return nil })
		must(t, p.Run(t.Context()))
		expect.Equal(t, inputs(tm, "p/b"), "failed1,succeeded2,failed3,succeeded4", "stage b")
		expect.Equal(t, inputs(tm, "p/c"), "succeededfailed1,succeeded2,failed3,succeeded4", "stage c")
		checkArchived(t, tm, 6)
		s := expect.Result(tm.Manager.GroupStatus(t.Context(), "p/a")).Value(t)
		expect.True(t, s.Decided, s)
		expect.Equal(t, last, want, "calls after the last stage")
	}
	expect.True(t, log.Count("level=ERROR")+log.Count("level=WARN") == 0, log.String())
}

// Each handles tasks one by one, and After waits until Each has handled all of them. Follow-ups of Each may belong to the
// next stage.
func TestPipelineEach(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	p := tm.Manager.Pipeline("p")
	handled := ""
	p.Start("a", opens("1", "2", "3"))
	p.Each("a", func(_ context.Context, f *manager.Finished) error {
		if handled += f.Input; handled == "1" {
			return errors.New("again")
		}
		d := f.Definition
		d.Group, d.Input = "p/b", "f"+f.Input
		f.Open(d)
		return nil
	})
	p.After("a", "b", func(ctx context.Context, b *manager.Stage) error {
		for one, err := range p.Tasks(ctx, "a") {
			expect.NoError(t, err)
			expect.Equal(t, one.State, tdf.Archived)
		}
		b.Open(define("p", source, "last"))
		return nil
	})
	p.Each("b", func(_ context.Context, f *manager.Finished) error { handled += " " + f.Input; return nil })
	must(t, p.Run(t.Context()))
	expect.Len(t, strings.Fields(handled), 5, "handled", handled)
	expect.Equal(t, inputs(tm, "p/b"), "f2 f3 f1 last", "handled", handled)
	checkArchived(t, tm, 7)
}

// Stages without tasks are complete. Two first stages are independent.
func TestPipelineWithoutTasks(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	p := tm.Manager.Pipeline("p")
	calls := ""
	p.Start("a", nothing)
	p.After("a", "b", func(context.Context, *manager.Stage) error { calls += "a"; return nil })
	p.After("b", "c", func(_ context.Context, c *manager.Stage) error {
		calls += "b"
		c.Open(define("p", source, "x"))
		return nil
	})
	p.Start("y", opens("1"))
	p.After("y", "", func(context.Context, *manager.Stage) error { calls += "y"; return nil })
	must(t, p.Run(t.Context()))
	expect.Len(t, calls, 3)
	if !strings.Contains(calls, "ab") {
		expect.Equal(t, calls, "ayb")
	}
	expect.Equal(t, inputs(tm, "p/c"), "x", "calls", calls)
	checkArchived(t, tm, 2)
}

func TestInvalidPipelines(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	for want, define := range map[string]func(p *manager.Pipeline){
		"has no start":                   func(p *manager.Pipeline) { p.After("a", "b", nothing) },
		`stage "x" is never opened`:      func(p *manager.Pipeline) { p.Start("a", nothing); p.After("x", "y", nothing) },
		`stage "a" is opened twice`:      func(p *manager.Pipeline) { p.Start("a", nothing); p.After("a", "a", nothing) },
		"no function for stage \"a\"":    func(p *manager.Pipeline) { p.Start("a", nil) },
		"Each has no function":           func(p *manager.Pipeline) { p.Start("a", nothing); p.Each("a", nil) },
		"contains a slash":               func(p *manager.Pipeline) { p.Start("a/b", nothing) },
		"two functions handle its tasks": func(p *manager.Pipeline) { p.Start("a", nothing); p.Each("a", ignore); p.Each("a", ignore) },
	} {
		p := tm.Manager.Pipeline("p")
		define(p)
		err := p.Run(t.Context())
		expect.Fails(t, err, want)
		expect.True(t, strings.HasPrefix(err.Error(), "run pipeline: "), err, want)
		for _, err := range p.Tasks(t.Context(), "a") {
			expect.Fails(t, err, want, "tasks")
		}
		expect.Fails(t, p.Forget(t.Context()), want, "forget")
	}
	p := tm.Manager.Pipeline("p")
	p.Start("a", nothing)
	for _, err := range p.Tasks(t.Context(), "b") {
		expect.Fails(t, err, `pipeline "p" has no stage "b"`)
	}
}

// Names with spaces, quotes, wildcards and other letters are valid. Two definitions with one unique key open one task.
func TestPipelineWithUnusualNames(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	p := tm.Manager.Pipeline(`ü *:[x]{y} "`)
	stages := []string{"a b", `'%s\`, "..", " "}
	unique := func(_ context.Context, s *manager.Stage) error {
		d := define("p", source, "x")
		d.Unique, d.UniqueUntil = "k", task.UntilFinished
		s.Open(d, d)
		return nil
	}
	p.Start(stages[0], unique)
	for i := range stages[1:] {
		p.After(stages[i], stages[i+1], unique)
	}
	must(t, p.Run(t.Context()))
	must(t, p.Run(t.Context()))
	for _, stage := range stages {
		expect.Len(t, tm.Outputs(`ü *:[x]{y} "/`+stage), 1, "stage", stage, "has … tasks")
	}
	checkArchived(t, tm, len(stages))
}

func ignore(context.Context, *manager.Finished) error { return nil }
