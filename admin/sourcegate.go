package admin

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/origin"
	"github.com/tdf-framework/tdf/redisstate"
)

// noProgram is where the source of a task points that names no program: its rounds run in the process of a worker
// (docs/programs.md, "Rounds without a process").
var noProgram = strings.Repeat("0", 64)

// sourceGate says whether workers could get an open task's program. Workers that run rounds in their own process need none.
func (c *situation) sourceGate(ctx context.Context, s *redisstate.Store) (Gate, error) {
	t := c.task
	src, err := tdf.ParseSource(t.Source)
	serving := c.inProcess()
	switch {
	case t.State != tdf.Open:
		return Gate{}, nil
	case err == nil && len(serving) > 0:
		return Gate{"source", Passed, "it is not fetched: these workers run rounds in their own process: " + some(serving), ""}, nil
	case err == nil && src.Scheme == tdf.SchemeRedis && src.Location == noProgram:
		return c.noProgramGate(), nil
	case err != nil:
		return Gate{"source", Holds, err.Error(), fmt.Sprintf("tdf set %d --source …", t.ID)}, nil
	case src.Scheme == tdf.SchemeRedis:
		return storedGate(ctx, s, src, t)
	case src.Scheme == tdf.SchemeRsync:
		return Gate{"source", Ahead, src.String() + ": only a worker can tell whether it is there", ""}, nil
	}
	return httpGate(ctx, src), nil
}

// noProgramGate holds a task only where workers live that cannot run it: which worker comes next is not known.
func (c *situation) noProgramGate() Gate {
	gate := Gate{"source", Ahead, "it names no program: a worker that runs rounds in its own process has to run the task", ""}
	if slices.ContainsFunc(c.workers, func(w redisstate.WorkerStatus) bool { return w.Alive(c.now) }) {
		gate.State, gate.Cure = Holds, fmt.Sprintf("start such a worker, or tdf set %d --source …", c.task.ID)
	}
	return gate
}

// inProcess names the workers that live and run rounds in their own process.
func (c *situation) inProcess() []string {
	var names []string
	for i := range c.workers {
		if w := &c.workers[i]; w.InProcess && w.Alive(c.now) {
			names = append(names, w.Name)
		}
	}
	return names
}

func storedGate(ctx context.Context, s *redisstate.Store, src tdf.Source, t *tdf.Task) (Gate, error) {
	stored, err := s.HasProgram(ctx, src.Location)
	if err != nil || stored {
		return Gate{"source", Passed, "the program is stored in this namespace", ""}, err
	}
	return Gate{
		"source", Holds, src.String() + " is not stored in this namespace: a worker that lacks the program cannot get it",
		fmt.Sprintf("tdf push DIR, and tdf set %d --source …", t.ID),
	}, nil
}

// headTimeout is how long a web server may take to answer.
const headTimeout = 5 * time.Second

// httpGate asks for the headers of an http source. Only a plain no counts: workers may see what is not seen from here,
// and the other way round.
func httpGate(ctx context.Context, src tdf.Source) Gate {
	ctx, cancel := context.WithTimeout(ctx, headTimeout)
	defer cancel()
	request, err := origin.NewRequest(ctx, http.MethodHead, src.Location)
	if err != nil {
		return Gate{"source", Ahead, src.String() + ": " + err.Error(), ""}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	response, err := origin.Client(transport).Do(request)
	if err != nil {
		return Gate{"source", Ahead, src.String() + ": from here: " + origin.Reason(err).Error(), ""}
	}
	response.Body.Close()
	gate := Gate{"source", Ahead, src.String() + ": from here: " + response.Status, ""}
	switch code := response.StatusCode; {
	case code == http.StatusNotFound || code == http.StatusGone:
		gate.State, gate.Cure = Holds, "put the program there; a worker that has it already does not ask"
	case code < 300:
		gate.State = Passed
	}
	return gate
}
