package cli

import (
	"context"
	"iter"
	"slices"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// MaxNamed is the maximum number of skipped tasks that a command prints one by one.
const MaxNamed = 5

// ReportUnknown prints the arguments that name no existing task. If it has printed an argument, it returns errProblems.
func ReportUnknown(ctx context.Context, a *App, s *Shards, args []string, existing map[string]bool) error {
	unknown, err := UnknownIDs(ctx, s, args, existing)
	if err != nil || len(unknown) == 0 {
		return err
	}
	for i, line := range unknown {
		if i == MaxNamed {
			a.Say("… and %d more", len(unknown)-i)
			break
		}
		a.Say("%s", line)
	}
	return ErrProblems
}

// UnknownIDs returns a line for each argument that names no existing task. The map has an entry for the name of each
// task that is known to exist.
func UnknownIDs(ctx context.Context, s *Shards, args []string, existing map[string]bool) (lines []string, err error) {
	for _, arg := range args {
		namespace, text := manager.SplitTaskName(arg)
		ids, err := ParseIDs([]string{text})
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(ids, func(id int64) bool { return existing[manager.TaskName(namespace, id)] }) {
			continue
		}
		m, err := s.In(namespace)
		if err != nil {
			return nil, err
		}
		exists, err := matchesAny(m.List(ctx, manager.Query{IDs: ids}))
		if err != nil {
			return nil, err
		}
		if !exists {
			lines = append(lines, arg+": no such task")
		}
	}
	return lines, nil
}

// CheckFailure returns an error for an unknown failure group.
func (f *Filter) CheckFailure(ctx context.Context, s *Shards) error {
	all := s.Shards.All(manager.Query{Failure: f.Failure, FailureBy: f.FailureBy, States: task.States})
	exists, err := matchesAny(s.List(ctx, all))
	if err != nil || exists {
		return err
	}
	return Usagef("unknown failure group %q: no task of this namespace is in it; tdf failures lists the groups, "+
		"and a group of tdf failures --by RULE needs the same --by", f.Failure)
}

// UnknownCampaign returns the error for a campaign without tasks.
func UnknownCampaign(name string) error {
	return Usagef("unknown campaign %q: no task of this namespace belongs to it; tdf campaigns lists them", name)
}

// matchesAny reports whether there is any task.
func matchesAny(tasks iter.Seq2[*manager.Task, error]) (bool, error) {
	for _, err := range tasks {
		return err == nil, err
	}
	return false, nil
}
