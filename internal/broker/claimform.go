package broker

import (
	"time"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/resources"
	"github.com/tdf-framework/tdf/redisstate"
)

const (
	mostClaims  = 100
	longestWait = 60 * time.Second
	longestTime = 10 * 365 * 24 * time.Hour
)

// A ClaimRequest asks for tasks.
type ClaimRequest struct {
	Most     int     `json:"most,omitempty" doc:"the largest number of tasks, up to 100; 1 if it is missing, unless the claim prefetches tasks"`
	Prefetch int     `json:"prefetch,omitempty" doc:"the largest number of further tasks, which you start later; together with most, up to 100"`
	Wait     float64 `json:"wait,omitempty" doc:"seconds to wait for a task if there is none, up to 60, and up to two thirds of the lease"`
	Number   int64   `json:"number,omitempty" doc:"the number of the claim, from 1 up; if you get no answer, repeat the call with the same number, and you get the same tasks"`
	// TimeLeft is like [redisstate.ClaimParams.TimeLeft], in seconds.
	TimeLeft float64 `json:"time_left,omitempty" doc:"seconds for which your programs may still run; you get no task with a longer min_time; without it, they have no limit"`

	Free []resources.Stock `json:"free,omitempty" doc:"for a worker with resources: what is free, which is what the registration returned without what the running tasks have taken"`

	Base64 bool `json:"base64,omitempty" doc:"texts are always in the members that end in _base64"`

	Queues []class.QueueShare `json:"-"` // if there are any, instead of the queues of the worker's registration
}

// A Claimed is the answer to a claim.
type Claimed struct {
	Tasks   []ClaimedTask `json:"tasks" doc:"the tasks to run; empty if there is none"`
	Now     time.Time     `json:"now,omitzero" doc:"the time by Redis's clock, to which all other times belong"`
	Lease   float64       `json:"lease" doc:"seconds; renew each claim whenever a third of this time has passed"`
	Drained string        `json:"drained,omitempty" doc:"who has drained the worker; it gets no tasks until it is resumed"`
	Reports []Reported    `json:"reports,omitempty" doc:"an answer to each report, in the same order"`
}

// A ClaimedTask is a task to run. A text that is not UTF-8 is only in the member that ends in _base64.
type ClaimedTask struct {
	ID         int64  `json:"id"`
	Round      int    `json:"round"`
	Claim      string `json:"claim" doc:"names this run of the task, together with id and round, in renewals and reports"`
	Prefetched bool   `json:"prefetched,omitempty" doc:"you may start the task later, or release it unstarted"`

	Program string `json:"program"`
	Source  string `json:"source,omitempty" doc:"where to get the program, if the task has a source"`

	Input       *string  `json:"input,omitempty"`
	InputBase64 []byte   `json:"input_base64,omitempty"`
	Args        []string `json:"args" doc:"the input, split into words as a POSIX shell does; empty for an input of any bytes, which is in input_base64"`

	Campaign   string  `json:"campaign,omitempty"`
	Meta       *string `json:"meta,omitempty"`
	MetaBase64 []byte  `json:"meta_base64,omitempty"`
	After      bool    `json:"after,omitempty" doc:"the task has waited for others, whose results you can read"`

	Blobs []string `json:"blobs,omitempty" doc:"what the task needs, as SHA256:BYTES or SHA256:BYTES:PATH; with a path, it is a file in the directory of the command"`

	Fetch []string `json:"fetch,omitempty" doc:"patterns of the files that the report must have if the program succeeds"`

	Resources string                 `json:"resources,omitempty" doc:"what the task asks for"`
	Share     *resources.RemoteShare `json:"share,omitempty" doc:"what it has of a worker with resources"`

	Deadline time.Time `json:"deadline,omitzero" doc:"when the task times out or expires; missing: never"`
	Seconds  *float64  `json:"seconds,omitempty" doc:"the time from now to the deadline"`

	Checkpoint       *string `json:"checkpoint,omitempty" doc:"the last checkpoint of an earlier round"`
	CheckpointBase64 []byte  `json:"checkpoint_base64,omitempty"`
	LastError        *string `json:"last_error,omitempty" doc:"the error of the round before this one"`
	LastErrorBase64  []byte  `json:"last_error_base64,omitempty"`
}

func (r *ClaimRequest) check() error {
	if r.Most == 0 && r.Prefetch == 0 {
		r.Most = 1
	}
	switch {
	case r.Most < 0 || r.Most > mostClaims:
		return invalid("most: want 1 to %d", mostClaims)
	case r.Prefetch < 0 || r.Prefetch > mostClaims-r.Most:
		return invalid("prefetch: want at least 0, and together with most at most %d", mostClaims)
	case !(r.Wait >= 0 && r.Wait <= longestWait.Seconds()):
		return invalid("wait: want 0 to %v seconds", longestWait.Seconds())
	case !(r.TimeLeft >= 0 && r.TimeLeft <= longestTime.Seconds()):
		return invalid("time_left: want 0 to %.0f seconds", longestTime.Seconds())
	case r.Number < 0 || r.Number > redisstate.MaxClaimNumber:
		return invalid("number: want 1 to %d", redisstate.MaxClaimNumber)
	}
	return nil
}

func taskOf(x redisstate.Claim, now task.Time, base64 bool) ClaimedTask {
	t := x.Task
	out := ClaimedTask{
		ID: t.ID, Round: t.Round, Claim: x.ID, Prefetched: t.Current().Prefetched, Program: t.Program, Source: t.Source,
		Campaign: t.Group,
		After:    t.Links > 0, Resources: t.Resources, Args: []string{}, Fetch: t.Fetch, Blobs: t.Blobs,
	}
	out.Input, out.InputBase64 = text(t.Input, base64)
	out.Meta, out.MetaBase64 = text(t.Meta, base64)
	switch args, data, err := t.Arguments(); {
	case data != nil:
		out.Input, out.InputBase64 = nil, data
	case err == nil && utf8.ValidString(t.Input) && len(args) > 0:
		out.Args = args
	}
	if end := min(t.EndBefore, now.Add(t.Timeout)); end < task.Never {
		left := float64(end.Sub(now))
		out.Deadline, out.Seconds = end.Std(), &left
	}
	return out
}

// text returns a text as it is, or if that is impossible in JSON or not wanted, its bytes.
func text(s string, base64 bool) (*string, []byte) {
	switch {
	case s == "":
		return nil, nil
	case base64 || !utf8.ValidString(s):
		return nil, []byte(s)
	}
	return &s, nil
}
