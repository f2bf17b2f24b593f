package slurm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/manager"
)

// scontrol is the command scontrol: show job, hold and release.
func scontrol(ctx context.Context, a *cli.App, args []string) error {
	f := newFlags()
	f.SetInterspersed(true)
	oneLine := f.BoolP("oneliner", "o", false, "")
	without(f, "", "details/d all/a quiet/Q")
	words, err := parse(f, args)
	if err != nil {
		return err
	}
	if len(words) == 0 {
		return errScontrol
	}
	if words[0] == "show" && len(words) > 1 {
		kind, id, assigned := strings.Cut(words[1], "=")
		list := words[2:]
		if assigned {
			list = append([]string{id}, list...)
		}
		if !slices.Contains([]string{"job", "jobs", "jobid"}, strings.ToLower(kind)) || len(list) > 1 {
			return errScontrol
		}
		return a.WithManager(ctx, func(m *cli.Client) error { return show(ctx, a, m, list, *oneLine) })
	}
	change := changes[words[0]]
	if change == nil || len(words) < 2 {
		return errScontrol
	}
	return a.WithManager(ctx, func(m *cli.Client) error { return steer(ctx, m, words[0], words[1:], change) })
}

var errScontrol = errors.New("TDF has only these: scontrol show job [ID], hold ID, release ID")

// show prints jobs.
func show(ctx context.Context, a *cli.App, m *cli.Client, list []string, oneLine bool) error {
	f := &filter{states: []string{"ALL"}}
	if len(list) > 0 {
		err := f.setRefs(list[0])
		if err != nil {
			return err
		}
	}
	all, err := f.queue(ctx, m)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		a.Say("No jobs in the system")
	}
	for _, v := range condense(all) {
		lines := v.lines()
		if oneLine {
			lines = []string{strings.Join(lines, " ")}
		}
		for i, line := range lines {
			fmt.Fprintln(a.Stdout, strings.Repeat(" ", 3*min(i, 1))+format.Printable(line))
		}
		if !oneLine {
			fmt.Fprintln(a.Stdout)
		}
	}
	return nil
}

// shown are the lines of scontrol show job after the first: names with the names of fields, or with a text after a
// colon.
var shown = []string{
	"UserId=owner Priority=Priority Account=Account QOS=QOS",
	"JobState=State Reason=Reason Dependency=dependency",
	"Requeue=requeue Restarts=restarts BatchFlag=:1 Reboot=:0 ExitCode=ExitCode",
	"RunTime=Elapsed TimeLimit=Timelimit TimeMin=:N/A",
	"SubmitTime=Submit EligibleTime=Eligible",
	"StartTime=Start EndTime=End Deadline=:N/A",
	"Partition=Partition",
	"NodeList=node",
	"BatchHost=node",
	"NumNodes=:1 NumCPUs=ReqCPUS NumTasks=:1 CPUs/Task=ReqCPUS",
	"MinMemoryNode=ReqMem TresPerNode=gres",
	"Command=command",
	"WorkDir=WorkDir",
	"Comment=Comment",
	"StdErr=stderr",
	"StdIn=stdin",
	"StdOut=stdout",
}

// lines returns the lines of scontrol show job.
func (v *view) lines() []string {
	lines := []string{"JobId=" + fields["JobIDRaw"](v)}
	if v.Index != nil {
		lines[0] += fmt.Sprintf(" ArrayJobId=%d ArrayTaskId=%s", v.arrayJob(), v.element(""))
	}
	if v.Throttle > 0 {
		lines[0] += fmt.Sprintf(" ArrayTaskThrottle=%d", v.Throttle)
	}
	lines[0] += " JobName=" + v.Name
	for _, line := range shown {
		var parts []string
		for part := range strings.FieldsSeq(line) {
			name, of, _ := strings.Cut(part, "=")
			value, isText := strings.CutPrefix(of, ":")
			if !isText {
				value = cmp.Or(fields[of](v), "(null)")
			}
			parts = append(parts, name+"="+value)
		}
		lines = append(lines, strings.Join(parts, " "))
	}
	return lines
}

// changes are the commands of scontrol that change jobs. Each changes one job.
var changes = map[string]func(context.Context, *cli.Client, *view) (manager.Result, error){
	"hold": func(ctx context.Context, m *cli.Client, v *view) (manager.Result, error) {
		return m.Update(ctx, manager.Changes{StartAfter: new(farFuture)}, v.t.Ref())
	},
	"release": func(ctx context.Context, m *cli.Client, v *view) (manager.Result, error) {
		if !v.isHeld() {
			return manager.Result{}, nil
		}
		return m.Update(ctx, manager.Changes{StartAfter: new(time.Time)}, v.t.Ref())
	},
}

// steer changes jobs, and says which it could not change.
func steer(
	ctx context.Context, m *cli.Client, verb string, lists []string,
	change func(context.Context, *cli.Client, *view) (manager.Result, error),
) error {
	var problems []error
	for _, list := range lists {
		refs, err := parseRefs(list)
		if err != nil {
			return err
		}
		found, unknown, err := resolve(ctx, m, refs)
		if err != nil {
			return err
		}
		for _, r := range unknown {
			problems = append(problems, fmt.Errorf("%s job %v: invalid job id specified", verb, r))
		}
		for _, v := range found {
			if !v.isMine() {
				problems = append(problems,
					fmt.Errorf("%s job %s: access/permission denied: it belongs to %s", verb, v.id(), v.User))
				continue
			}
			result, err := change(ctx, m, v)
			problems = append(problems, errors.Join(result.Skipped...), err)
		}
	}
	return errors.Join(problems...)
}
