package manager

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/tdf-framework/tdf/internal/task"
)

// A Pipeline opens tasks in stages (docs/manager.md, "Pipelines"). Each stage is a group of tasks. When all tasks of a
// stage are finished, a function opens the next stage. The progress is in Redis. So an interrupted pipeline continues
// when it runs again. Several managers may run the same pipeline at once.
//
// Define the stages with [Pipeline.Start], [Pipeline.After] and [Pipeline.Each], and then call [Pipeline.Run].
type Pipeline struct {
	manager *Manager
	plan    task.Plan
	start   map[string]StageFunc // by the stage that the function opens
	after   map[string]StageFunc // by the stage after which the function runs
	each    map[string]func(ctx context.Context, t *Finished) error
}

// A StageFunc opens the tasks of a stage. It runs at least once. It runs again after a crash, and may run in several
// managers at the same time. If it returns an error or panics, Run calls it again: after 1 s, then 2 s, 4 s and so on,
// up to 5 min. If it ends its goroutine, as t.FailNow does, the goroutine of Run ends. When ctx ends, the function must
// return.
type StageFunc func(ctx context.Context, s *Stage) error

// Pipeline returns a pipeline without stages. Its name identifies the pipeline in Redis. After a pipeline is done,
// another run with the same name does nothing, so use a new name for new work.
func (m *Manager) Pipeline(name string) *Pipeline {
	return &Pipeline{
		manager: m, plan: task.Plan{Pipeline: name},
		start: map[string]StageFunc{}, after: map[string]StageFunc{}, each: map[string]func(context.Context,
			*Finished) error{},
	}
}

// Start sets the function that opens the first stage. Run opens the tasks in chunks, while the function runs. If Run
// was interrupted, it calls the function again, and skips the definitions whose tasks it has opened before. So the
// function must open the same definitions in the same order each time. If the program, the input or the meta of a
// skipped definition has changed, Run logs an error and opens no more tasks.
func (p *Pipeline) Start(stage string, open StageFunc) {
	p.plan.First = append(p.plan.First, stage)
	p.start[stage] = open
}

// After sets the function that opens the next stage when a stage is complete. A stage is complete when all of its tasks
// are finished, and the function of [Pipeline.Each] has handled them. Some of them may have failed. The function reads
// the tasks with [Pipeline.Tasks].
//
// When the function returns nil, one atomic step decides that the stage is complete and opens the next stage. If a task
// of the stage is not finished at that moment, because a user has retried it, Redis refuses the step, and the function
// runs again later. An interrupted call of the function has no effect. So the function may open other tasks each time.
// If next is "", the stage is the last one, and the function opens nothing.
func (p *Pipeline) After(stage, next string, open StageFunc) {
	p.plan.After = append(p.plan.After, task.StagesInRow{Stage: stage, Next: next})
	p.after[stage] = open
}

// Each sets the function that Run calls for each finished task of a stage. Run then archives the task, as [Manager.Run]
// does after its callbacks. Without Each, Run archives the tasks of a stage when the function of After has taken
// effect.
func (p *Pipeline) Each(stage string, callback func(ctx context.Context, t *Finished) error) {
	p.plan.Each = append(p.plan.Each, stage)
	p.each[stage] = callback
}

// Tasks returns the tasks of a stage by ascending id, with their results and outputs. It reads them in pages, so that
// few tasks are in memory at a time.
func (p *Pipeline) Tasks(ctx context.Context, stage string) iter.Seq2[*Task, error] {
	stages, err := p.stages()
	if err == nil && !slices.Contains(stages, stage) {
		err = fmt.Errorf("read tasks: pipeline %q has no stage %q", p.plan.Pipeline, stage)
	}
	if err != nil {
		return func(yield func(*Task, error) bool) { yield(nil, err) }
	}
	return p.manager.List(ctx, Query{Group: task.StageGroup(p.plan.Pipeline, stage), Order: ByID, Read: ReadOutput})
}

// Forget removes the records of the pipeline from Redis, so that another pipeline can have its name. Call it only when
// the pipeline is done. The groups of another pipeline with this name must have no tasks, so remove the tasks of this
// pipeline first.
func (p *Pipeline) Forget(ctx context.Context) error {
	stages, err := p.stages()
	if err != nil {
		return err
	}
	groups := make([]string, len(stages))
	for i, stage := range stages {
		groups[i] = task.StageGroup(p.plan.Pipeline, stage)
	}
	return p.manager.in().Stages().RemoveStageRecords(ctx, groups)
}

// stages returns the names of all stages, or an error if the pipeline is invalid.
func (p *Pipeline) stages() ([]string, error) {
	for stage, f := range p.each {
		if f == nil {
			return nil, fmt.Errorf("pipeline %q: Each has no function for stage %q", p.plan.Pipeline, stage)
		}
	}
	for _, functions := range []map[string]StageFunc{p.start, p.after} {
		for stage, f := range functions {
			if f == nil {
				return nil, fmt.Errorf("pipeline %q: Start or After has no function for stage %q", p.plan.Pipeline,
					stage)
			}
		}
	}
	stages, err := p.plan.Stages()
	if err != nil {
		return nil, fmt.Errorf("invalid pipeline: %w", err)
	}
	return stages, nil
}

// Run runs the pipeline. It returns nil when the pipeline is done: all of its tasks are archived. If the pipeline is
// already done, Run returns at once. If the pipeline is invalid, Run returns an error at once. If ctx ends, Run returns
// the cause of ctx. To stop the pipeline because of an error, cancel ctx with this error as its cause.
//
// The functions of Start run at the same time as other functions. Run calls all others one at a time. Only one Run of a
// manager can run at a time.
func (p *Pipeline) Run(ctx context.Context) error {
	stages, err := p.stages()
	if err != nil {
		return fmt.Errorf("run pipeline: %w", err)
	}
	if !p.manager.in().Running.TryLock() {
		return errRunning
	}
	defer p.manager.in().Running.Unlock()
	x, err := p.newRun(stages)
	if err != nil {
		return fmt.Errorf("run pipeline: %w", err)
	}
	defer x.stop()
	return x.run.loop(ctx)
}

// A Stage opens the tasks of a stage. Several goroutines may use it at once, until the function of the stage returns.
type Stage struct {
	open func(definitions []Definition)
}

// Open opens tasks in the stage. The pipeline sets their Group. Their [Dependencies] cannot have Places. If another
// task holds the Unique key of a definition, the pipeline opens no task for this definition. Open returns no error. If
// a definition is invalid or Redis refuses a task, Run calls the function of the stage again after a pause.
func (s *Stage) Open(definitions ...Definition) {
	own := slices.Clone(definitions) // the caller may change the definitions after this call
	for i := range own {
		d := &own[i]
		d.Tags, d.After, d.AfterAny = slices.Clone(d.Tags), cloned(d.After), cloned(d.AfterAny)
	}
	s.open(own)
}

func cloned(d *Dependencies) *Dependencies {
	if d == nil {
		return nil
	}
	return &Dependencies{Tasks: slices.Clone(d.Tasks), Places: slices.Clone(d.Places), Group: d.Group}
}

// stageTasks returns the properties of the tasks of a stage. It refuses invalid definitions.
func (m *Manager) stageTasks(group string, definitions []Definition) ([]task.Properties, error) {
	all := m.in().Properties(definitions)
	for i := range all {
		all[i].Group = group
		if err := all[i].Validate(); err != nil {
			return nil, fmt.Errorf("a definition is invalid: %w", err)
		}
		if all[i].HasPlaces() { // the tasks of a stage are opened in several calls
			return nil, errors.New(
				"a definition is invalid: the tasks of a stage cannot wait for each other; use two stages")
		}
	}
	return all, nil
}
