package slurm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// A record is what the meta of a job's task says about the job. The columns of tdf results have these names.
type record struct {
	Name       string `json:"slurm_job"`
	User       string `json:"user"`
	UID        int    `json:"uid"`
	ArrayJob   int64  `json:"array_job,omitempty"` // 0 in the first element, whose own id it is
	Index      *int64 `json:"array_task,omitempty"`
	Throttle   int    `json:"throttle,omitempty"`
	Dir        string `json:"dir"`
	Command    string `json:"command"`
	StdOut     string `json:"stdout"`
	StdErr     string `json:"stderr"`
	StdIn      string `json:"stdin"`
	Partition  string `json:"partition,omitempty"`
	Account    string `json:"account,omitempty"`
	QOS        string `json:"qos,omitempty"`
	Comment    string `json:"comment,omitempty"`
	Dependency string `json:"dependency,omitempty"`
	CPUs       int    `json:"cpus"`
	GPUs       int    `json:"gpus,omitempty"`
	Memory     int64  `json:"memory,omitempty"`
	Once       bool   `json:"once,omitempty"`
	Never      bool   `json:"never,omitempty"` // its dependency could not be met when it was submitted
}

// The name of the cluster, and of the partition of a job without one.
const cluster, partition = "tdf", "tdf"

// A view is a task as the commands of Slurm show it.
type view struct {
	record
	t    *manager.Task
	last *manager.Round // the round that ran last, or an empty one
	held bool           // the group is paused

	pending []int64 // the indexes of the pending elements that a line stands for
	batch   bool    // the line of a job's step batch
}

// newView returns the view of a task, or nil if it is no job of these commands.
func newView(t *manager.Task) *view {
	v := &view{t: t, last: cmp.Or(t.LastRun(), &manager.Round{})}
	err := json.Unmarshal([]byte(t.Meta), &v.record)
	if err != nil || v.Name == "" || v.User == "" {
		return nil
	}
	return v
}

// arrayJob returns the id of the array, or of the job if it is none.
func (v *view) arrayJob() int64 { return cmp.Or(v.ArrayJob, v.t.ID) }

// id returns the id of the job as Slurm writes it.
func (v *view) id() string {
	switch {
	case v.Index == nil:
		return fmt.Sprint(v.t.ID)
	case len(v.pending) > 0 && v.Throttle > 0:
		return fmt.Sprintf("%d_[%s%%%d]", v.arrayJob(), v.element(), v.Throttle)
	case len(v.pending) > 0:
		return fmt.Sprintf("%d_[%s]", v.arrayJob(), v.element())
	}
	return fmt.Sprintf("%d_%s", v.arrayJob(), v.element())
}

// element returns the index of an element, or those of all elements that the view stands for.
func (v *view) element() string {
	switch {
	case len(v.pending) > 0:
		return ranges(v.pending)
	case v.Index != nil:
		return fmt.Sprint(*v.Index)
	}
	return "N/A"
}

func (v *view) isFinished() bool { return v.t.Outcome != "" }
func (v *view) hasRun() bool     { return v.last.Worker != "" && v.state() != pending }

// isNever reports whether the dependency of the job cannot be met any more.
func (v *view) isNever() bool {
	marked := v.last.Progress != nil && v.last.Progress.Text == neverMet
	return v.Never || v.t.Outcome == string(task.Failed) && (v.last.Worker == "" || marked)
}

// The states that this package compares.
const pending, running, completing, completed = "PENDING", "RUNNING", "COMPLETING", "COMPLETED"

// shortStates are all states with the codes of squeue.
var shortStates = map[string]string{
	pending: "PD", running: "R", completing: "CG", completed: "CD", "CANCELLED": "CA", "FAILED": "F", "TIMEOUT": "TO",
	"NODE_FAIL": "NF", "DEADLINE": "DL",
}

func (v *view) state() string {
	switch v.t.State {
	case task.Open:
		return pending
	case task.Running:
		return running
	case task.Executed:
		return completing
	}
	switch {
	case v.isNever():
		return "CANCELLED"
	case v.t.Outcome == string(task.Failed) && !v.last.Lost.IsZero():
		return "NODE_FAIL"
	}
	return map[string]string{
		string(task.Succeeded): completed, string(task.Failed): "FAILED", string(task.TimedOut): "TIMEOUT",
		string(task.Expired): "DEADLINE", task.Cancelled: "CANCELLED",
	}[v.t.Outcome]
}

// reason says why a job is pending, or how it ended.
func (v *view) reason() string {
	switch state := v.state(); {
	case v.isNever():
		return neverMet
	case state == "FAILED":
		return "NonZeroExitCode"
	case state == "TIMEOUT":
		return "TimeLimit"
	case state == pending && v.held:
		return "JobHeldAdmin"
	case v.isHeld():
		return "JobHeldUser"
	case v.t.Waits:
		return "Dependency"
	case v.t.WaitsForLimit:
		return "JobArrayTaskLimit"
	}
	return "None"
}

// isHeld reports whether the job waits for scontrol release.
func (v *view) isHeld() bool { return v.t.State == task.Open && !v.t.StartAfter.Before(farFuture) }

// exit returns the exit status of the job and the signal that ended it.
func (v *view) exit() (code, signal int) {
	name, isSignal := strings.CutPrefix(v.last.Exit, "signal: ")
	switch state := v.state(); {
	case !v.hasRun() || !v.isFinished() || state == "TIMEOUT" || v.isNever():
		return 0, 0
	case state == "CANCELLED":
		return 0, int(syscall.SIGTERM)
	case !isSignal:
		code, err := strconv.Atoi(name)
		if err != nil && state != completed {
			code = 1 // the program could not be run
		}
		return code, 0
	}
	for signal = 1; signal < 65; signal++ {
		if syscall.Signal(signal).String() == name || unix.SignalName(syscall.Signal(signal)) == name {
			return 0, signal
		}
	}
	return 1, 0
}

// times returns when the job started and ended, and how long it has run. A time is zero if it has not come.
func (v *view) times() (start, end time.Time, ran time.Duration) {
	if v.isFinished() {
		end = v.t.Entered
	}
	if !v.hasRun() {
		return start, end, 0
	}
	until := time.Now()
	if v.isFinished() {
		end = cmp.Or(v.last.Ended, end)
		until = end
	}
	return v.last.Started, end, max(until.Sub(v.last.Started), 0).Truncate(time.Second)
}

// file returns the path of a file of the job.
func (v *view) file(pattern string) string {
	return expand(pattern, strings.Clone, func(verb byte, width int) string {
		index := int64(noElement)
		if v.Index != nil {
			index = *v.Index
		}
		number, isNumber := map[byte]int64{'j': v.t.ID, 'A': v.arrayJob(), 'a': index, 'n': 0, 't': 0}[verb]
		if isNumber {
			return fmt.Sprintf("%0*d", width, number)
		}
		return map[byte]string{'J': fmt.Sprint(v.t.ID, ".batch"), 's': "batch", 'u': v.User, 'x': v.Name}[verb]
	})
}

// fields returns the columns of squeue, sacct and scontrol. Those of sacct have its names, which begin with a capital.
func (v *view) fields() map[string]string {
	start, end, ran := v.times()
	code, signal := v.exit()
	cpus, allocated, node := fmt.Sprint(v.CPUs), "0", ""
	f := map[string]string{
		"NTasks": "", "MaxRSS": "", "AveRSS": "", "DerivedExitCode": "0:0", "ReqNodes": "1", "AllocNodes": "0",
		"Timelimit": "UNLIMITED", "TimelimitRaw": "UNLIMITED",
		"limit": "UNLIMITED", "left": "UNLIMITED", "gres": "N/A", "ReqMem": "0",
	}
	if v.hasRun() {
		allocated, node, f["AllocNodes"] = cpus, v.last.Worker, "1"
	}
	if limit := v.t.Timeout; limit < 10*365*24*time.Hour {
		f["Timelimit"], f["TimelimitRaw"] = clock(limit, true), fmt.Sprint(int(limit.Minutes()))
		f["limit"], f["left"] = clock(limit, false), clock(limit-ran, false)
	}
	if v.GPUs > 0 {
		f["gres"] = fmt.Sprint("gres:gpu:", v.GPUs)
	}
	switch {
	case v.Memory > 0 && v.Memory%(1<<30) == 0:
		f["ReqMem"] = fmt.Sprint(v.Memory>>30, "G")
	case v.Memory > 0:
		f["ReqMem"] = fmt.Sprint(v.Memory>>20, "M")
	}
	add := func(pairs ...string) {
		for i := 0; i < len(pairs); i += 2 {
			f[pairs[i]] = pairs[i+1]
		}
	}
	add("JobID", v.id(), "JobIDRaw", fmt.Sprint(v.t.ID), "ArrayJobID", fmt.Sprint(v.arrayJob()),
		"ArrayTaskID", v.element(), "JobName", v.Name, "User", v.User,
		"UID", fmt.Sprint(v.UID), "owner", fmt.Sprintf("%s(%d)", v.User, v.UID),
		"State", v.state(), "code", shortStates[v.state()], "ExitCode", fmt.Sprintf("%d:%d", code, signal),
		"Reason", v.reason(), "Elapsed", clock(ran, true), "ElapsedRaw", fmt.Sprint(int(ran.Seconds())),
		"ran", clock(ran, false), "Submit", moment(v.t.Opened),
		"Eligible", moment(v.t.Opened), "Start", moment(start), "End", moment(end),
		"AllocCPUS", allocated, "NCPUS", allocated, "ReqCPUS", cpus, "NNodes", "1",
		"TotalCPU", clock(v.last.CPUTime, true), "CPUTime", clock(ran*time.Duration(v.CPUs), true),
		"CPUTimeRAW", fmt.Sprint(int(ran.Seconds())*v.CPUs),
		"NodeList", cmp.Or(node, "None assigned"), "node", node, "where", cmp.Or(node, "("+v.reason()+")"),
		"Partition", cmp.Or(v.Partition, partition), "Account", v.Account, "QOS", v.QOS, "Comment", v.Comment,
		"Cluster", cluster, "WorkDir", v.Dir, "command", v.Command, "dependency", v.Dependency,
		"Priority", fmt.Sprint(*v.t.Priority), "stdin", v.file(v.StdIn), "stdout", v.file(v.StdOut),
		"stderr", v.file(v.StdErr), "requeue", map[bool]string{false: "1", true: "0"}[v.Once],
		"restarts", fmt.Sprint(v.t.Round))
	if v.batch {
		add("JobID", v.id()+".batch", "JobIDRaw", f["JobIDRaw"]+".batch", "JobName", "batch", "NTasks", "1",
			"MaxRSS", fmt.Sprint(v.last.MaxRSS>>10, "K"), "AveRSS", fmt.Sprint(v.last.MaxRSS>>10, "K"))
		for _, ofJob := range strings.Fields("User UID Partition QOS Timelimit TimelimitRaw ReqMem WorkDir Priority") {
			f[ofJob] = ""
		}
	}
	return f
}

// clock writes a time span as [days-]hours:minutes:seconds. If it is not long, it leaves out leading zeros.
func clock(d time.Duration, long bool) string {
	s := int(d.Seconds())
	text := fmt.Sprintf("%02d:%02d:%02d", s/3600%24, s/60%60, s%60)
	switch {
	case s >= 86400:
		return fmt.Sprintf("%d-%s", s/86400, text)
	case !long && s < 3600:
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	case !long:
		return strings.TrimPrefix(text, "0")
	}
	return text
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "Unknown"
	}
	return t.Local().Format("2006-01-02T15:04:05")
}

// condense replaces the pending elements of each array by one view, as Slurm does.
func condense(all []*view) (condensed []*view) {
	first := map[string]*view{}
	for _, v := range all {
		key := fmt.Sprint(v.arrayJob(), v.reason())
		if v.Index == nil || v.state() != pending || v.t.Round > 0 {
			condensed = append(condensed, v)
			continue
		}
		if first[key] == nil {
			first[key] = v
			condensed = append(condensed, v)
		}
		first[key].pending = append(first[key].pending, *v.Index)
	}
	return condensed
}
