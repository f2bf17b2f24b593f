package slurm

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/program"
)

// sbatch is the command sbatch.
func sbatch(ctx context.Context, a *cli.App, args []string) error {
	j := &job{a: a}
	rest, err := parse(j.flags(), args) // the directory and --wrap say which script to read
	if err != nil {
		return err
	}
	err = j.readScript(rest)
	if err != nil {
		return err
	}
	inScript, err := directives(j.script)
	if err != nil {
		return err
	}
	preset := j.name
	*j = job{a: a, script: j.script, args: j.args, command: j.command}
	f := j.flags()
	rest, err = parse(f, inScript)
	switch {
	case err != nil:
		return fmt.Errorf("#SBATCH: %w", err)
	case len(rest) > 0:
		return fmt.Errorf("#SBATCH: invalid argument %s", rest[0])
	}
	err = setFromEnvironment(a, f)
	if err != nil {
		return err
	}
	_, err = parse(f, args) // the command line counts most
	if err != nil {
		return err
	}
	j.name = cmp.Or(j.name, preset)
	err = j.complete()
	if err != nil {
		return err
	}
	return a.WithManager(ctx, func(m *cli.Client) error { return j.run(ctx, m) })
}

// run submits the job, prints its id, and waits for it with --wait.
func (j *job) run(ctx context.Context, m *cli.Client) error {
	id, group, err := j.submit(ctx, m)
	var changed *task.PropertyError
	if errors.As(err, &changed) && changed.Property == task.FieldAfter { // a task has just failed
		id, group, err = j.submit(ctx, m)
	}
	switch {
	case err != nil:
		return err
	case j.testOnly:
		j.a.Say("sbatch: the job is valid; with --test-only, nothing was submitted")
		return nil
	case j.parsable:
		fmt.Fprintln(j.a.Stdout, id)
	case !j.quiet:
		fmt.Fprintf(j.a.Stdout, "Submitted batch job %d\n", id)
	}
	if !j.wait {
		return nil
	}
	return awaitGroup(ctx, m, group)
}

// submit opens the tasks of the job. It returns the id of the job and the group of its tasks.
func (j *job) submit(ctx context.Context, m *cli.Client) (id int64, group string, err error) {
	d, err := j.dependencies(ctx, m)
	if err != nil {
		return 0, "", err
	}
	packed, err := j.pack(d.notOK)
	if err != nil {
		return 0, "", err
	}
	base, err := j.properties(m, packed, d)
	if err != nil || j.testOnly {
		return 0, "", err
	}
	opening, release := j.a.Outlive(ctx) // an interruption does not leave unknown tasks behind
	defer release()
	_, err = program.PushPacked(opening, m.Manager, packed)
	if err != nil {
		return 0, "", err
	}
	err = j.limitTasks(opening, m, &base)
	if err != nil {
		return 0, "", err
	}
	if j.array != nil && len(j.array.indexes) > 1 {
		id, err = j.openArray(opening, ctx, m, base)
	} else {
		id, err = j.openFirst(opening, m, base)
	}
	if err == nil && d.never {
		_, err = m.CancelOpen(opening, base.Group)
	}
	return id, base.Group, err
}

// farFuture is the start of jobs that are held.
var farFuture = time.Date(5000, 1, 1, 0, 0, 0, 0, time.UTC)

// properties returns the properties of the first task.
func (j *job) properties(m *cli.Client, packed program.Packed, d *dependencies) (task.Properties, error) {
	p := m.Define(packed.Name, packed.Source, "")
	id := strings.ToLower(rand.Text()[:8])
	stamp := time.Now().UTC().Format("-20060102-150405-") + id
	name := program.NameAfter(j.name)
	p.Group = strings.ToValidUTF8(name[:min(len(name), task.MaxName-len(arrayKey)-len(stamp))], "") + stamp
	p.FailOn, p.MaxFails, p.MaxTimeouts, p.MaxAttempts = task.FailOnExit, 0, 0, 0
	if j.once {
		p.MaxLosses = 0
	}
	if j.limit > 0 {
		p.Timeout = task.For(j.limit)
	}
	p.Resources, p.After, p.AfterAny = j.resources(), d.after, d.afterAny
	if len(j.tags) > 0 {
		p.Tags = j.tags
	}
	if j.hold || d.never {
		p.StartAfter = task.At(farFuture)
	}
	err := j.number(&p, 0, 0, d.never)
	if err == nil {
		err = p.Validate()
	}
	return p, err
}

// number gives the task of an element its input and meta. first is the id of the array, or 0 for the first element.
func (j *job) number(p *task.Properties, place int, first int64, never bool) error {
	r := j.record()
	r.Never = never
	if j.array != nil {
		index := j.array.indexes[place]
		r.ArrayJob, r.Index, r.Throttle = first, &index, j.array.throttle
		p.Input = fmt.Sprintf("%d %d", first, index)
	}
	meta, err := json.Marshal(r)
	p.Meta = string(meta)
	return err
}

// openFirst opens the first task.
func (j *job) openFirst(ctx context.Context, m *cli.Client, base task.Properties) (int64, error) {
	tasks, err := cli.OpenAs(ctx, m.Open, base)
	if err != nil {
		return 0, err
	}
	return tasks[0].ID, m.CloseGroup(ctx, base.Group)
}

// openAtOnce is how many tasks of an array a call opens.
const openAtOnce = 1000

// openArray opens the tasks of an array. Their group is paused meanwhile, so that a part of an array never starts: if
// this process is killed, the elements wait until the user cancels them. If it fails, it cancels them.
func (j *job) openArray(ctx, interrupted context.Context, m *cli.Client, base task.Properties) (id int64, err error) {
	gate := task.Pausable{Group: base.Group}
	err = m.Pauses().Begin(ctx, gate)
	if err != nil {
		return 0, err
	}
	tasks, err := cli.OpenAs(ctx, m.Open, base)
	if err == nil {
		id = tasks[0].ID
	}
	for from := 1; from < len(j.array.indexes) && err == nil; from += openAtOnce {
		to := min(from+openAtOnce, len(j.array.indexes))
		err = interrupted.Err()
		if err == nil {
			err = j.openElements(ctx, m, base, from, to, id)
		}
	}
	if err == nil {
		err = m.CloseGroup(ctx, base.Group)
	}
	if err != nil {
		return id, j.undo(m, base.Group, err)
	}
	return id, m.Pauses().End(ctx, gate)
}

// openElements opens the tasks of elements.
func (j *job) openElements(ctx context.Context, m *cli.Client, base task.Properties, from, to int, first int64) error {
	var batch []task.Properties
	for place := from; place < to; place++ {
		p := base
		err := j.number(&p, place, first, false)
		if err != nil {
			return err
		}
		batch = append(batch, p)
	}
	_, err := cli.OpenAs(ctx, m.Open, batch...)
	return err
}

// undo cancels the tasks of an array that is not complete. It prints what it does, because a signal that ends sbatch
// ends it without an error message.
func (j *job) undo(m *cli.Client, group string, cause error) error {
	ctx := j.a.Unhurried()
	j.a.Say("sbatch: the array is not complete: cancelling what was submitted, which may take minutes; " +
		"a second signal ends this")
	_, err := m.CancelOpen(ctx, group)
	if err == nil {
		err = m.Pauses().End(ctx, task.Pausable{Group: group})
	}
	if err != nil {
		j.a.Say("sbatch: a part of the array may remain, and none of it starts: "+
			"squeue --name=%s shows its ID, and scancel ID removes it", cli.ShellWord(j.name))
	} else {
		j.a.Say("sbatch: no element of the array has started, and those that were submitted are cancelled")
	}
	return errors.Join(cause, err)
}

// limitTasks limits how many tasks of the job run at once: for --array=…%N, and for the dependency singleton.
func (j *job) limitTasks(ctx context.Context, m *cli.Client, p *task.Properties) error {
	limit := 0
	switch {
	case j.isSingleton():
		p.LimitKey, limit = singletonKey(j.name), 1
	case j.array != nil && j.array.throttle > 0:
		p.LimitKey, limit = arrayKey+p.Group, j.array.throttle
	default:
		return nil
	}
	err := forgetLimits(ctx, m)
	if err != nil {
		return err
	}
	return m.Limits().Set(ctx, p.LimitKey, task.Limit{AtMost: limit})
}

// singletonKey is the limit key of all jobs of a user and a name with the dependency singleton. Its length is bounded.
func singletonKey(name string) string {
	return fmt.Sprintf("slurm-singleton-%x", sha256.Sum256([]byte(userName()+" "+name)))
}

// arrayKey begins the limit keys of arrays. The group of the array follows.
const arrayKey = "slurm-array-"

// forgetLimits removes the limits of arrays that are complete, because a namespace can have 10,000.
func forgetLimits(ctx context.Context, m *cli.Client) error {
	all, err := m.Limits().All(ctx)
	for _, l := range all {
		group, isArray := strings.CutPrefix(l.Key, arrayKey)
		if !isArray || l.Running+l.Waiting > 0 {
			continue
		}
		status, err := m.GroupStatus(ctx, group)
		if err == nil && status.Complete() {
			err = m.Limits().Remove(ctx, l.Key)
		}
		if err != nil {
			return err
		}
	}
	return err
}

// awaitGroup waits until all tasks of a group have finished. Its error has the highest exit status.
func awaitGroup(ctx context.Context, m *cli.Client, group string) error {
	for {
		counts, err := m.Counts(ctx, group)
		if err != nil {
			return err
		}
		if counts.Unfinished() == 0 {
			break
		}
		err = cli.Sleep(ctx, waitPause)
		if err != nil {
			return err
		}
	}
	status := 0
	for t, err := range m.List(ctx, manager.Query{Group: group}) {
		if err != nil {
			return err
		}
		status = max(status, exitStatus(t))
	}
	if status > 0 {
		return cli.ExitStatus(status)
	}
	return nil
}

// waitPause is how often --wait looks.
const waitPause = 500 * time.Millisecond

// exitStatus returns the status of a finished task as a shell would see it: 1 if the program has none.
func exitStatus(t *manager.Task) int {
	v := newView(t)
	code, signal := v.exit()
	switch {
	case signal > 0:
		return 128 + signal
	case code == 0 && v.state() != completed:
		return 1
	}
	return code
}
