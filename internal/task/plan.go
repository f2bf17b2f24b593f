package task

import (
	"fmt"
	"slices"
	"strings"
)

// A Plan is the order of the stages of a pipeline (docs/manager.md, "Pipelines").
type Plan struct {
	Pipeline string
	First    []string      // the stages that the pipeline opens at its start
	After    []StagesInRow // the stages after which a function runs, each with the next stage
	Each     []string      // the stages whose finished tasks are handled one by one
}

// StagesInRow names a stage, and the stage that follows when the first stage is complete.
type StagesInRow struct {
	Stage, Next string // Next is "" if no stage follows
}

// StageGroup returns the name of the group that has the tasks of a stage.
func StageGroup(pipeline, stage string) string { return pipeline + "/" + stage }

// Stages returns all stages that the plan opens, each after the stage that opens it. It returns an error if a name is
// invalid, if a stage is opened twice or never, or if two functions handle the same stage.
func (p *Plan) Stages() ([]string, error) {
	if err := checkStageName("pipeline", p.Pipeline); err != nil {
		return nil, err
	}
	next := map[string]string{}
	for _, a := range p.After {
		if _, twice := next[a.Stage]; twice {
			return nil, fmt.Errorf("stage %q: two functions run after it; want at most one", a.Stage)
		}
		next[a.Stage] = a.Next
	}
	var stages []string
	for _, stage := range p.First {
		if stage == "" {
			return nil, checkStageName("stage", stage)
		}
		for ; stage != ""; stage = next[stage] {
			if slices.Contains(stages, stage) {
				return nil, fmt.Errorf("stage %q is opened twice; want one stage that opens it, or one start", stage)
			}
			if err := p.checkStage(stage); err != nil {
				return nil, err
			}
			stages = append(stages, stage)
		}
	}
	if len(p.First) == 0 {
		return nil, fmt.Errorf("pipeline %q has no start; want at least one stage that opens at the start", p.Pipeline)
	}
	return stages, p.checkUsed(stages)
}

func (p *Plan) checkUsed(opened []string) error {
	used := slices.Clone(p.Each)
	for _, a := range p.After {
		used = append(used, a.Stage)
	}
	for _, stage := range used {
		if !slices.Contains(opened, stage) {
			return fmt.Errorf("stage %q is never opened; want a start, or another stage that opens it", stage)
		}
	}
	for i, stage := range p.Each {
		if slices.Contains(p.Each[:i], stage) {
			return fmt.Errorf("stage %q: two functions handle its tasks; want at most one", stage)
		}
	}
	return nil
}

func (p *Plan) checkStage(stage string) error {
	if err := checkStageName("stage", stage); err != nil {
		return err
	}
	return checkName("group", StageGroup(p.Pipeline, stage))
}

func checkStageName(what, name string) error {
	if name == "" {
		return invalidProperty(what, "is empty; want a name")
	}
	if strings.Contains(name, "/") {
		return invalidProperty(what, "%q contains a slash; want a name without slashes", name)
	}
	return checkName(what, name)
}
