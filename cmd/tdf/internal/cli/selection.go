package cli

import (
	"context"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/manager"
)

// MaxNamed is the maximum number of skipped tasks that a command prints one by one.
const MaxNamed = 5

// ReportUnknown prints the arguments that name no existing task. If it has printed an argument, it returns errProblems.
func ReportUnknown(ctx context.Context, a *App, m *Client, args []string, existing map[int64]bool) error {
	unknown, err := UnknownIDs(ctx, m, args, existing)
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

// UnknownIDs returns a line for each argument that names no existing task. The map has an entry for each id
// whose task is known to exist.
func UnknownIDs(ctx context.Context, m *Client, args []string, existing map[int64]bool) (lines []string, err error) {
	for _, arg := range args {
		ids, err := ParseIDs([]string{arg})
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(ids, func(id int64) bool { return existing[id] }) {
			continue
		}
		exists, err := matchesAny(ctx, m, manager.Query{IDs: ids})
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
func (f *Filter) CheckFailure(ctx context.Context, m *Client) error {
	exists, err := matchesAny(ctx, m, manager.Query{Failure: f.Failure, FailureBy: f.FailureBy, States: tdf.States})
	if err != nil || exists {
		return err
	}
	return Usagef("unknown failure group %q: no task of this namespace is in it; tdf failures lists the groups, "+
		"and a group of tdf failures --by RULE needs the same --by", f.Failure)
}

// matchesAny reports whether any task matches the query.
func matchesAny(ctx context.Context, m *Client, q manager.Query) (bool, error) {
	for _, err := range m.List(ctx, q) {
		return err == nil, err
	}
	return false, nil
}
