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

// Names that Slurm has and TDF does not.
const (
	cluster   = "tdf"
	partition = "tdf"
)

// A view is a task as the commands of Slurm show it.
type view struct {
	record
	t     *manager.Task
	last  *manager.Round // the round that ran last; nil if none ran
	never bool           // its dependency cannot be met any more
	held  bool           // the group is paused

	pending []int64 // the indexes of the pending elements that a line stands for
	batch   bool    // the line of a job's step batch
}

// newView returns the view of a task, or nil if it is no job of these commands.
func newView(t *manager.Task) *view {
	v := &view{t: t, last: t.LastRun()}
	err := json.Unmarshal([]byte(t.Meta), &v.record)
	if err != nil || v.Name == "" || v.User == "" {
		return nil
	}
	v.never = v.Never || t.Outcome == string(task.Failed) && (v.last == nil || strings.Contains(t.Result(), neverMet))
	return v
}

// arrayJob returns the id of the array, or of the job if it is none.
func (v *view) arrayJob() int64 { return cmp.Or(v.ArrayJob, v.t.ID) }

// name returns the id of the job as Slurm writes it.
func (v *view) id() string {
	switch {
	case v.Index == nil:
		return strconv.FormatInt(v.t.ID, 10)
	case len(v.pending) > 0:
		limit := ""
		if v.Throttle > 0 {
			limit = "%" + strconv.Itoa(v.Throttle)
		}
		return fmt.Sprintf("%d_[%s%s]", v.arrayJob(), ranges(v.pending), limit)
	}
	return fmt.Sprintf("%d_%d", v.arrayJob(), *v.Index)
}

func (v *view) isFinished() bool { return v.t.Outcome != "" }

// The states of jobs that this package compares.
const (
	pending   = "PENDING"
	running   = "RUNNING"
	completed = "COMPLETED"
	cancelled = "CANCELLED"
)

// shortStates are all states with the codes of squeue.
var shortStates = map[string]string{
	pending: "PD", running: "R", "COMPLETING": "CG", completed: "CD", cancelled: "CA", "FAILED": "F", "TIMEOUT": "TO",
	"NODE_FAIL": "NF", "DEADLINE": "DL",
}

func (v *view) state() string {
	switch v.t.State {
	case task.Open:
		return pending
	case task.Running:
		return running
	case task.Executed:
		return "COMPLETING"
	}
	switch {
	case v.t.Outcome == string(task.Succeeded):
		return completed
	case v.never || v.t.Outcome == task.Cancelled:
		return cancelled
	case v.t.Outcome == string(task.TimedOut):
		return "TIMEOUT"
	case v.t.Outcome == string(task.Expired):
		return "DEADLINE"
	case v.last != nil && !v.last.Lost.IsZero():
		return "NODE_FAIL"
	}
	return "FAILED"
}

// reason says why a job is pending, or how it ended.
func (v *view) reason() string {
	switch {
	case v.never:
		return neverMet
	case v.state() == "FAILED":
		return "NonZeroExitCode"
	case v.state() == "TIMEOUT":
		return "TimeLimit"
	case v.state() != pending:
		return "None"
	case v.held:
		return "JobHeldAdmin"
	case v.isHeld():
		return "JobHeldUser"
	case v.t.Waits:
		return "Dependency"
	case v.t.WaitsForLimit:
		return "JobArrayTaskLimit"
	case v.t.ClaimableFrom.After(time.Now()):
		return "BeginTime"
	}
	return "None"
}

// isHeld reports whether the job waits for scontrol release.
func (v *view) isHeld() bool { return v.t.State == task.Open && !v.t.StartAfter.Before(farFuture) }

// exit returns the exit status of the job and the signal that ended it.
func (v *view) exit() (code, signal int) {
	switch {
	case v.last == nil || !v.isFinished() || v.state() == "TIMEOUT" || v.never:
		return 0, 0
	case v.state() == cancelled:
		return 0, int(syscall.SIGTERM)
	case v.last.Exit == "" && v.state() != completed: // the program could not be run
		return 1, 0
	}
	name, isSignal := strings.CutPrefix(v.last.Exit, "signal: ")
	if !isSignal {
		code, _ = strconv.Atoi(v.last.Exit)
		return code, 0
	}
	for n := 1; n < 65; n++ {
		if syscall.Signal(n).String() == name || unix.SignalName(syscall.Signal(n)) == name {
			return 0, n
		}
	}
	return 1, 0
}

// times returns when the job started and ended; zero if it has not.
func (v *view) times() (start, end time.Time) {
	if v.isFinished() {
		end = v.t.Entered
	}
	if v.last == nil || v.state() == pending {
		return start, end
	}
	if v.isFinished() && !v.last.Ended.IsZero() {
		end = v.last.Ended
	}
	return v.last.Started, end
}

// elapsed returns how long the job has run.
func (v *view) elapsed() time.Duration {
	start, end := v.times()
	switch {
	case start.IsZero():
		return 0
	case end.IsZero():
		end = time.Now()
	}
	return max(end.Sub(start), 0).Truncate(time.Second)
}

// node returns the worker of the job.
func (v *view) node() string {
	if v.last == nil || v.state() == pending {
		return ""
	}
	return v.last.Worker
}

// file returns the path of a file of the job.
func (v *view) file(pattern string) string {
	return expand(pattern, strings.Clone, func(verb byte, width int) (string, bool) {
		number := func(n int64) string { return fmt.Sprintf("%0*d", width, n) }
		switch verb {
		case 'j':
			return number(v.t.ID), true
		case 'J':
			return number(v.t.ID) + ".batch", true
		case 'A':
			return number(v.arrayJob()), true
		case 'a':
			if v.Index != nil {
				return number(*v.Index), true
			}
			return "4294967294", true
		case 'n', 't':
			return number(0), true
		case 's':
			return "batch", true
		case 'u':
			return v.User, true
		case 'x':
			return v.Name, true
		}
		return "", false
	})
}

// condense replaces the pending elements of each array by one view, as Slurm does.
func condense(all []*view) (condensed []*view) {
	first := map[string]*view{}
	for _, v := range all {
		if v.Index == nil || v.state() != pending || v.t.Round > 0 {
			condensed = append(condensed, v)
			continue
		}
		key := fmt.Sprint(v.arrayJob(), v.reason())
		if first[key] == nil {
			first[key] = v
			condensed = append(condensed, v)
		}
		first[key].pending = append(first[key].pending, *v.Index)
	}
	return condensed
}
