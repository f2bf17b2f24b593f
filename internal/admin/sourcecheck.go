package admin

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/origin"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// noProgram is the SHA-256 in a source that names no program. The rounds of a task with this source run in the process
// of a worker (docs/programs.md, "Rounds without a process").
var noProgram = strings.Repeat("0", 64)

// sourceCheck checks whether workers can get the program of an open task. Workers that run rounds in their own process
// need no program.
func (c *situation) sourceCheck(ctx context.Context, s *redisstate.Store) (Check, error) {
	t := c.task
	src, err := task.ParseSource(t.Source)
	serving := c.inProcess()
	switch {
	case t.State != task.Open:
		return Check{}, nil
	case t.Source == "":
		return passed("source", "the task needs no source: only workers with a handler run it"), nil
	case err == nil && len(serving) > 0:
		return passed("source", "these workers run rounds in their own process and need no source: "+
			joinNames(serving)), nil
	case err == nil && src.Scheme == task.SchemeRedis && src.Location == noProgram:
		return c.noProgramCheck(), nil
	case err != nil:
		return blockedBy("source", FactSourceInvalid, err.Error(), fix("change the task's source")), nil
	case src.Scheme == task.SchemeRedis:
		return storedCheck(ctx, s, src)
	case src.Scheme == task.SchemeExec:
		return passed("source", "the task runs a command of the worker's machine, and fetches nothing"), nil
	case src.Scheme == task.SchemeRsync:
		return ahead("source", src.String()+": only a worker can check whether the program exists"), nil
	}
	return httpCheck(ctx, src), nil
}

// noProgramCheck blocks a task only if no live worker can run a task without a program.
func (c *situation) noProgramCheck() Check {
	check := ahead("source", "the source names no program: only a worker that runs rounds in its own process can "+
		"run the task")
	if slices.ContainsFunc(c.workers, func(w presence.WorkerStatus) bool { return w.Alive(c.at) }) {
		check.State, check.Code, check.Fix = Blocked, FactNoHandler,
			fix("run a worker with a handler for the program, or change the task's source")
	}
	return check
}

// inProcess returns the names of the live workers that may claim the task and run rounds in their own process.
func (c *situation) inProcess() []string {
	var names []string
	for i := range c.workers {
		if w := &c.workers[i]; w.InProcess && w.Alive(c.at) && class.Serves(&w.Offer, c.task.Requirement()) {
			names = append(names, w.Name)
		}
	}
	return names
}

func storedCheck(ctx context.Context, s *redisstate.Store, src task.Source) (Check, error) {
	stored, err := s.Programs.HasProgram(ctx, src.Location)
	if err != nil || stored {
		return passed("source", "the program is stored in this namespace"), err
	}
	return blockedBy("source", FactSourceMissing,
		src.String()+" is not stored in this namespace: a worker that lacks the program cannot get it",
		fix("store the program, and change the source of the task to the stored program", StepChangeSource)), nil
}

// headTimeout limits how long httpCheck waits for a web server.
const headTimeout = 5 * time.Second

// httpCheck requests the headers of an http source. The check blocks the task only if the server answers "not found".
// Any other error does not block the task, because workers may reach servers that this machine cannot reach.
func httpCheck(ctx context.Context, src task.Source) Check {
	ctx, cancel := context.WithTimeout(ctx, headTimeout)
	defer cancel()
	request, err := origin.NewRequest(ctx, http.MethodHead, src.Location)
	if err != nil {
		return ahead("source", src.String()+": "+err.Error())
	}
	// A manager's program may have replaced http.DefaultTransport, so this check uses a transport of its own.
	transport := origin.NewTransport(headTimeout)
	defer transport.CloseIdleConnections()
	response, err := origin.Client(transport).Do(request)
	if err != nil {
		return ahead("source", src.String()+": requested from this machine: "+origin.Reason(err).Error())
	}
	response.Body.Close()
	check := ahead("source", src.String()+": requested from this machine: "+response.Status)
	switch code := response.StatusCode; {
	case code == http.StatusNotFound || code == http.StatusGone:
		check.State, check.Code = Blocked, FactSourceMissing
		check.Fix = fix("put the program at this address; workers that already have the program do not need the " +
			"address")
	case code < 300:
		check.State = Passed
	}
	return check
}
