package web

import (
	"context"
	"errors"
	"math"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/resources"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// longestWait is the longest time for which a call waits for tasks.
const longestWait = time.Minute

// addWork adds the routes for workers (docs/http.md, "Workers").
func (a *api) addWork() {
	add(a, route{
		http.MethodPost, "/work", "register-worker", "Register a worker, and begin its session", toWork,
		false,
	}, a.registerWorker)
	add(a, route{http.MethodDelete, "/work/{session}", "sign-off-worker", "End the session of a worker", toWork, false},
		a.signOff)
	add(a, route{
		http.MethodPost, "/work/{session}/heartbeat", "send-heartbeat", "Say that a worker is alive", toWork,
		false,
	}, a.heartbeat)
	addWaiting(a, route{
		http.MethodPost, "/work/{session}/claims", "claim-tasks",
		"Claim tasks, and wait for them if there are none", toWork, false,
	}, longestWait, a.claimTasks)
	add(a, route{
		http.MethodPost, "/work/{session}/renewals", "renew-claims",
		"Renew claims, and report progress, updates and checkpoints", toWork, true,
	}, a.renewClaims)
	add(a, route{
		http.MethodPost, "/work/{session}/reports", "report-rounds",
		"Complete, fail or release tasks, and open the tasks that follow", toWork, true,
	}, a.reportRounds)
	add(a, route{
		http.MethodGet, "/work/{session}/after", "get-dependencies",
		"Read what a claimed task has waited for, as JSON Lines", toWork, true,
	}, a.getDependencies)
	add(a, route{
		http.MethodGet, "/work/{session}/programs/{sha256}", "get-program",
		"Read the stored program of a claimed task, as it was stored", toWork, true,
	}, a.getProgram)
	a.alsoAnswers("get-program", octets)
}

// oneOrMany is a body with one object, a list of objects, or JSON Lines.
type oneOrMany[T any] []T

func (m *oneOrMany[T]) UnmarshalJSON(data []byte) error { return readMany(data, (*[]T)(m)) }

// Schema describes an object, a list of objects, and JSON Lines.
func (oneOrMany[T]) Schema(r huma.Registry) *huma.Schema {
	one := r.Schema(reflect.TypeFor[T](), true, "")
	return &huma.Schema{OneOf: []*huma.Schema{one, {Type: huma.TypeArray, Items: one}}}
}

// report is a report whose tasks to open have the schema of definitions.
type report struct {
	broker.Report
	Open definitions `json:"open,omitempty" doc:"for complete: tasks to open in the same step in which the result is accepted, if the round succeeds"`
}

type sessionInput struct {
	Session string `path:"session" maxLength:"200" doc:"the session that the registration returned"`
}

type registerInput struct {
	Key  string `header:"Idempotency-Key" maxLength:"200" doc:"a text of your own, new for each start of the worker; a second call with this key returns the same session"`
	Body broker.Registration
}

func (a *api) registerWorker(ctx context.Context, c *call, in *registerInput) (*out[broker.Registered], error) {
	r, err := a.broker.Register(ctx, &c.token, in.Key, in.Body)
	if taken := new(presence.NameTakenError); errors.As(err, &taken) {
		p := refuse(string(task.CodeTaken), taken.Error())
		p.retry = int(math.Ceil(float64(taken.Wait())))
		return nil, p
	}
	return answerOf(r, err)
}

func answerOf[T any](v T, err error) (*out[T], error) {
	if err != nil {
		return nil, err
	}
	return &out[T]{v}, nil
}

func (a *api) signOff(ctx context.Context, c *call, in *sessionInput) (*none, error) {
	return nil, a.broker.SignOff(ctx, &c.token, in.Session)
}

type heartbeatInput struct {
	Session string `path:"session" maxLength:"200" doc:"the session that the registration returned"`
	Body    *struct {
		Runs []int64           `json:"runs,omitempty" doc:"the ids of the tasks that the worker runs, for people"`
		Free []resources.Stock `json:"free,omitempty" doc:"what a worker with resources has free, for people"`
	} `required:"false"`
}

func (a *api) heartbeat(ctx context.Context, c *call, in *heartbeatInput) (*out[broker.Beat], error) {
	var runs []int64
	var free []resources.Stock
	if in.Body != nil {
		runs, free = in.Body.Runs, in.Body.Free
	}
	return answerOf(a.broker.Heartbeat(ctx, &c.token, in.Session, runs, free))
}

// claimRequest is a claim that also reports rounds, so that a worker makes one call for each task.
type claimRequest struct {
	broker.ClaimRequest
	Reports []report `json:"reports,omitempty" doc:"rounds that have ended; they are reported before the claim, and count if the claim is refused"`
}

type claimInput struct {
	Session string        `path:"session" maxLength:"200" doc:"the session that the registration returned"`
	Body    *claimRequest `required:"false"`
}

func (a *api) claimTasks(ctx context.Context, c *call, in *claimInput) (*out[broker.Claimed], error) {
	if in.Body == nil {
		in.Body = &claimRequest{}
	}
	reported := &out[outcomes]{}
	var err error
	if len(in.Body.Reports) > 0 {
		reported, err = a.reportRounds(ctx, c, &reportInput{in.Session, in.Body.Reports})
	}
	if err != nil {
		return nil, err
	}
	claim, err := a.broker.Claim(ctx, &c.token, in.Session, in.Body.ClaimRequest)
	if err != nil {
		return nil, err
	}
	claim.Reports, c.undo = reported.Body.Reports, claim.Undo
	if claim.Waits {
		c.later = func() { a.waitForTasks(c, claim) }
	}
	return answerOf(claim.Claimed, nil)
}

// waitForTasks answers a call when there are tasks for it, or its time is over.
func (a *api) waitForTasks(c *call, claim *broker.Claiming) {
	ctx, cancel := context.WithCancelCause(c.request.Context())
	defer cancel(nil)
	defer context.AfterFunc(a.stopping(c.request), func() { cancel(errStopping) })()
	err := claim.Wait(ctx, a.waitingOf(c))
	c.undo = claim.Undo
	// an error means that there is no connection, as in tests
	_ = http.NewResponseController(c.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTime))
	if err != nil {
		a.problemOf(ctx, err).write(c)
		return
	}
	c.Header().Set("Content-Type", "application/json")
	_ = writeJSON(c, claim.Claimed) // fails only if the worker has gone
}

// waitingOf lets a call wait in a place of its own, so that it takes no place of other calls, and only as long as its
// token is valid.
func (a *api) waitingOf(c *call) broker.WaitHooks {
	begin := sync.OnceValue(func() error {
		release, err := a.waiting.Enter(c.token.Holder())
		if err != nil {
			return err
		}
		c.release()
		c.release = release
		c.account.Begin(a.memory, c.token.Holder()) // it holds nothing any more
		return nil
	})
	return broker.WaitHooks{Begin: begin, Still: func(ctx context.Context) error {
		if !a.roster.has(ctx, a, &c.token) {
			return errRevoked
		}
		return nil
	}}
}

type renewInput struct {
	Session string `path:"session" maxLength:"200" doc:"the session that the registration returned"`
	Body    oneOrMany[broker.Renewal]
}

func (a *api) renewClaims(ctx context.Context, c *call, in *renewInput) (*out[broker.Renewed], error) {
	return answerOf(a.broker.Renew(ctx, &c.token, in.Session, in.Body))
}

type reportInput struct {
	Session string `path:"session" maxLength:"200" doc:"the session that the registration returned"`
	Body    oneOrMany[report]
}

// outcomes is the answer to reports.
type outcomes struct {
	Reports []broker.Reported `json:"reports" doc:"an answer to each report, in the same order"`
}

func (a *api) reportRounds(ctx context.Context, c *call, in *reportInput) (*out[outcomes], error) {
	all := make([]broker.Report, len(in.Body))
	for i, r := range in.Body {
		all[i] = r.Report
		all[i].Open = r.Open
	}
	answers, err := a.broker.Report(ctx, &c.token, in.Session, all)
	return answerOf(outcomes{answers}, err)
}

// RunInput names a run of the worker of a session.
type RunInput struct {
	Session string `path:"session" maxLength:"200" doc:"the session that the registration returned"`
	ID      int64  `query:"id" required:"true" doc:"the id of the task"`
	Round   int    `query:"round" required:"true"`
	Claim   string `query:"claim" required:"true" maxLength:"200"`
}

func (in *RunInput) run() broker.Run { return broker.Run{ID: in.ID, Round: in.Round, Claim: in.Claim} }

func (a *api) getDependencies(_ context.Context, c *call, in *RunInput) (*streamed, error) {
	return nil, a.stream(c, jsonLines, func(s *stream) error {
		return a.broker.WriteDependencies(s.ctx, &c.token, in.Session, in.run(), s)
	})
}

type archiveInput struct {
	RunInput
	SHA256 string `path:"sha256" pattern:"^[0-9a-f]{64}$" doc:"the SHA-256 of the archive; the source of the task ends with it"`
}

func (a *api) getProgram(_ context.Context, c *call, in *archiveInput) (*streamed, error) {
	return nil, a.stream(c, octets, func(s *stream) error {
		return a.broker.WriteProgram(s.ctx, &c.token, in.Session, in.run(), in.SHA256, s)
	})
}

// releaseUnlessSent ends a call that has claimed tasks. If the worker cannot have got the answer, the tasks are
// released at once. The answer is not whole before releaseUnlessSent returns, so a worker that has got all of it is
// still there.
func (c *call) releaseUnlessSent(ctx context.Context) {
	if c.undo == nil {
		return
	}
	if c.status/100 != 2 || ctx.Err() != nil {
		c.undo()
		return
	}
	err := http.NewResponseController(c.ResponseWriter).Flush()
	if ctx.Err() != nil || err != nil && !errors.Is(err, http.ErrNotSupported) {
		c.undo()
	}
}
