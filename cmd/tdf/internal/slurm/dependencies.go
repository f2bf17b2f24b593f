package slurm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// dependencies are what --dependency means for the tasks of the job.
type dependencies struct {
	after, afterAny *task.Dependencies
	notOK           [][]int64 // for each job of afternotok the tasks of which one must not succeed
	never           bool      // one cannot be met any more
}

// neverMet is the reason of a job whose dependency cannot be met any more.
const neverMet = "DependencyNeverSatisfied"

// maxNotOK is how many tasks an array of afternotok may have: run.sh names them.
const maxNotOK = 1000

func (j *job) isSingleton() bool {
	for part := range strings.SplitSeq(j.dependency, ",") {
		if part == "singleton" {
			return true
		}
	}
	return false
}

// dependencies reads --dependency.
func (j *job) dependencies(ctx context.Context, m *cli.Client) (*dependencies, error) {
	d := &dependencies{after: &task.Dependencies{}, afterAny: &task.Dependencies{}}
	if j.dependency == "" {
		return d, nil
	}
	if strings.Contains(j.dependency, "?") {
		return nil, fmt.Errorf(
			"--dependency %s: TDF has no alternatives (?): separate the dependencies by commas", j.dependency,
		)
	}
	for part := range strings.SplitSeq(j.dependency, ",") {
		err := d.add(ctx, m, j, part)
		if err != nil {
			return nil, fmt.Errorf("--dependency %s: job dependency problem: %w; nothing was submitted", part, err)
		}
	}
	if d.never { // Redis refuses to open a task that waits for one that has failed
		d.after, d.afterAny = nil, nil
	}
	return d, nil
}

// add adds one dependency, such as afterok:17:18_3.
func (d *dependencies) add(ctx context.Context, m *cli.Client, j *job, part string) error {
	kind, list, _ := strings.Cut(part, ":")
	switch kind {
	case "singleton":
		return d.addSameName(ctx, m, j)
	case "afterok", "afterany", "afternotok":
	default:
		if !strings.ContainsAny(kind[:min(1, len(kind))], "0123456789") {
			return errors.New("want afterok, afterany, afternotok or singleton")
		}
		kind, list = "afterany", part
	}
	for name := range strings.SplitSeq(list, ":") {
		refs, err := parseRefs(name)
		if err != nil {
			return err
		}
		found, unknown, err := resolve(ctx, m, refs)
		switch {
		case err != nil:
			return err
		case len(unknown) > 0:
			return fmt.Errorf("there is no job %s: it does not exist any more, or never did", unknown[0])
		}
		err = d.addJob(kind, refs[0], found)
		if err != nil {
			return err
		}
	}
	return nil
}

// addJob adds a dependency on the tasks of a job. A whole array counts as one dependency if it is the only one.
func (d *dependencies) addJob(kind string, r ref, found []*view) error {
	to := d.afterAny
	if kind == "afterok" {
		to = d.after
	}
	whole := r.indexes == nil && len(found) > 1 && to.Group == "" && kind != "afternotok"
	if whole {
		to.Group = found[0].t.Group
	}
	var ids []int64
	finished, failed := true, false
	for _, v := range found {
		ids = append(ids, v.t.ID)
		bad := v.isFinished() && v.state() != completed
		d.never = d.never || bad && kind == "afterok"
		finished, failed = finished && v.isFinished(), failed || bad
	}
	if !whole {
		to.Tasks = append(to.Tasks, ids...)
	}
	if kind != "afternotok" {
		return nil
	}
	if len(ids) > maxNotOK {
		return fmt.Errorf("an array of afternotok may have %d tasks; this one has %d", maxNotOK, len(ids))
	}
	d.notOK, d.never = append(d.notOK, ids), d.never || finished && !failed
	return nil
}

// addSameName adds the jobs of the user with the same name that have not finished. Those that are singletons, too, have
// the same limit.
func (d *dependencies) addSameName(ctx context.Context, m *cli.Client, j *job) error {
	for t, err := range m.List(ctx, manager.Query{States: task.UnfinishedStates}) {
		if err != nil {
			return err
		}
		v := newView(t)
		if v != nil && v.Name == j.name && v.User == userName() && t.LimitKey != singletonKey(j.name) {
			d.afterAny.Tasks = append(d.afterAny.Tasks, t.ID)
		}
	}
	return nil
}
