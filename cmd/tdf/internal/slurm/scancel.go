package slurm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// isMine reports whether the user may change the job. This guards against mistakes: who may use the Redis can
// cancel each task with tdf cancel.
func (v *view) isMine() bool { return v.User == userName() }

// ownCluster refuses names of other clusters.
func ownCluster(names string) error {
	if !slices.Contains([]string{"", "all", cluster}, names) {
		return fmt.Errorf("there is only the cluster %s", cluster)
	}
	return nil
}

// scancel is the command scancel.
func scancel(ctx context.Context, a *cli.App, args []string) error {
	f := &filter{}
	flags := newFlags()
	flags.SetInterspersed(true)
	f.add(flags, "n")
	flags.FuncP("state", "t", "", f.setStates)
	flags.FuncP("clusters", "M", "", ownCluster)
	quiet := flags.BoolP("quiet", "Q", false, "")
	flags.FuncP("signal", "s", "", func(string) error {
		return errors.New("TDF sends no signals to jobs; without this option, scancel ends them")
	})
	without(flags, "partition/p qos/q", "full/f batch/b")
	words, err := parse(flags, args)
	if err != nil {
		return err
	}
	if len(words)+len(f.names)+len(f.users)+len(f.states) == 0 {
		return errors.New("no job identification provided")
	}
	if len(words) > 0 {
		err := f.setRefs(strings.Join(words, ","))
		if err != nil {
			return err
		}
	}
	return a.WithManager(ctx, func(m *cli.Client) error { return f.cancel(ctx, a, m, *quiet) })
}

// cancel cancels the jobs of the filter.
func (f *filter) cancel(ctx context.Context, a *cli.App, m *cli.Client, quiet bool) (err error) {
	var problems []error
	var all []*view
	if f.refs != nil {
		var unknown []ref
		all, unknown, err = resolve(ctx, m, f.refs)
		for _, r := range unknown {
			if !quiet { // the exit status is 0, as in Slurm
				a.Say("scancel: error: Kill job error on job id %v: Invalid job id specified", r)
			}
		}
	} else {
		all, err = list(ctx, m, manager.Query{States: task.UnfinishedStates})
	}
	if err != nil {
		return err
	}
	var ids []int64
	groups := map[string]bool{}
	for _, v := range all {
		switch {
		case v.isFinished() || !f.matches(v):
		case !v.isMine() && f.refs != nil:
			problems = append(problems, fmt.Errorf("kill job error on job id %s: access/permission denied: it belongs to %s",
				v.id(), v.User))
		case v.isMine():
			ids = append(ids, v.t.ID)
			groups[v.t.Group] = true
		}
	}
	result, err := m.Cancel(ctx, manager.ByIDs(ids...)...)
	problems = append(problems, err)
	for _, skipped := range result.Skipped {
		var state *rules.StateError
		if !errors.As(skipped, &state) { // otherwise, the job has just ended
			problems = append(problems, skipped)
		}
	}
	problems = append(problems, endGates(ctx, m, groups))
	return errors.Join(problems...)
}

// endGates ends the pauses of arrays whose sbatch was killed, if no task is left.
func endGates(ctx context.Context, m *cli.Client, groups map[string]bool) error {
	paused, err := m.Pauses().All(ctx)
	if err != nil {
		return err
	}
	for _, p := range paused {
		if !groups[p.Group] {
			continue
		}
		counts, err := m.Counts(ctx, p.Group)
		if err == nil && counts.Unfinished() == 0 {
			err = m.Pauses().End(ctx, p.Pausable)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
