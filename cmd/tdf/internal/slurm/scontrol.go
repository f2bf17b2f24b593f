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
	"github.com/tdf-framework/tdf/internal/lazy"
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
	words = strings.Split(strings.Join(words, "="), "=") // show job=17, or show job 17
	isJob := func(word string) bool {
		return slices.Contains([]string{"job", "jobs", "jobid"}, strings.ToLower(word))
	}
	switch {
	case len(words) > 1 && len(words) < 4 && words[0] == "show" && isJob(words[1]):
		return a.WithManager(ctx, func(m *cli.Client) error { return show(ctx, a, m, words[2:], *oneLine) })
	case len(words) > 1 && words[0] == "hold":
		return a.WithManager(ctx, func(m *cli.Client) error { return hold(ctx, m, words[1:], farFuture) })
	case len(words) > 1 && words[0] == "release":
		return a.WithManager(ctx, func(m *cli.Client) error { return hold(ctx, m, words[1:], time.Time{}) })
	}
	return errors.New("TDF has only these: scontrol show job [ID], hold ID, release ID")
}

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
		text := v.text()
		if oneLine {
			text = strings.ReplaceAll(text, "\n   ", " ")
		} else {
			text += "\n"
		}
		fmt.Fprintln(a.Stdout, text)
	}
	return nil
}

// shown is what scontrol shows after the names of a job: names with the names of fields, or with a text after a colon.
const shown = `
   UserId=owner Priority=Priority Account=Account QOS=QOS
   JobState=State Reason=Reason Dependency=dependency
   Requeue=requeue Restarts=restarts BatchFlag=:1 Reboot=:0 ExitCode=ExitCode
   RunTime=Elapsed TimeLimit=Timelimit TimeMin=:N/A
   SubmitTime=Submit EligibleTime=Eligible
   StartTime=Start EndTime=End Deadline=:N/A
   Partition=Partition
   NodeList=node
   BatchHost=node
   NumNodes=:1 NumCPUs=ReqCPUS NumTasks=:1 CPUs/Task=ReqCPUS
   MinMemoryNode=ReqMem TresPerNode=gres
   Command=command
   WorkDir=WorkDir
   Comment=Comment
   StdErr=stderr
   StdIn=stdin
   StdOut=stdout`

var shownField = lazy.Regexp(`=:?\S+`)

// text returns what scontrol shows of a job.
func (v *view) text() string {
	head := fmt.Sprint("JobId=", v.t.ID)
	if v.Index != nil {
		head += fmt.Sprintf(" ArrayJobId=%d ArrayTaskId=%s", v.arrayJob(), v.element())
	}
	if v.Throttle > 0 {
		head += fmt.Sprintf(" ArrayTaskThrottle=%d", v.Throttle)
	}
	fields := v.fields()
	return format.Printable(head+" JobName="+v.Name) + shownField().ReplaceAllStringFunc(shown, func(name string) string {
		text, isText := strings.CutPrefix(name, "=:")
		if !isText {
			text = format.Printable(cmp.Or(fields[name[1:]], "(null)"))
		}
		return "=" + text
	})
}

// hold sets the start of pending jobs: it holds or releases them.
func hold(ctx context.Context, m *cli.Client, lists []string, start time.Time) error {
	refs, err := parseRefs(strings.Join(lists, ","))
	if err != nil {
		return err
	}
	found, unknown, err := resolve(ctx, m, refs)
	if err != nil {
		return err
	}
	var problems []error
	for _, r := range unknown {
		problems = append(problems, fmt.Errorf("job %v: invalid job id specified", r))
	}
	for _, v := range found {
		switch {
		case !v.isMine():
			problems = append(problems, fmt.Errorf("job %s: access/permission denied: it belongs to %s", v.id(), v.User))
		case v.isHeld() || !start.IsZero():
			result, err := m.Update(ctx, manager.Changes{StartAfter: &start}, v.t.Ref())
			problems = append(problems, errors.Join(result.Skipped...), err)
		}
	}
	return errors.Join(problems...)
}
