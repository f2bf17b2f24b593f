package remote

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"time"

	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/resources"
	"github.com/tdf-framework/tdf/redisstate"
)

const (
	mostClaims  = 100
	longestWait = 60 * time.Second
	leastWait   = 100 * time.Millisecond // between two claims that wait, if the first one came back at once
)

// Exchange reports how rounds have ended, and then claims tasks, if claim is not nil, without prefetched ones. The
// worker must not claim while [Remote.Await] does.
func (r *Remote) Exchange(ctx, claiming context.Context, claim *redisstate.ClaimParams, all ...*broker.Delivery) (
	redisstate.ClaimResult, error,
) {
	err := r.report(ctx, all)
	if claim == nil {
		return redisstate.ClaimResult{}, err
	}
	return r.claim(claiming, r.next(*claim))
}

// next returns the next claim. If its answer is lost, the repeated call gets the same tasks.
func (r *Remote) next(claim redisstate.ClaimParams) broker.ClaimRequest {
	r.number++
	return broker.ClaimRequest{
		Most: min(claim.Most, mostClaims), Number: r.number, TimeLeft: float64(claim.TimeLeft),
		Free: resources.StocksOf(claim.Free),
	}
}

// Await makes a claim that waits for tasks, until ctx ends. When the context claiming ends, it gives up waiting for the
// answer.
func (r *Remote) Await(ctx, claiming context.Context, claim redisstate.ClaimParams, _ time.Duration) (woken bool,
	c redisstate.ClaimResult, err error,
) {
	if left := leastWait - time.Since(r.polled); left > 0 {
		r.sleep(ctx, left)
	}
	if ctx.Err() != nil {
		return false, c, nil
	}
	body := r.next(claim)
	body.Wait, r.polled = min(r.lease.Std()*2/3, longestWait).Seconds(), time.Now()
	both, cancel := context.WithCancelCause(claiming)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	c, err = r.claim(both, body)
	if err == nil || ctx.Err() == nil || claiming.Err() != nil {
		return false, c, err
	}
	body.Wait = 0 // the worker stops, and the lost answer may have had tasks
	c, err = r.claim(claiming, body)
	return false, c, err
}

// Confirms returns false: the server waits for its replicas.
func (*Remote) Confirms(context.Context) bool { return false }

func (r *Remote) claim(ctx context.Context, body broker.ClaimRequest) (redisstate.ClaimResult, error) {
	var got broker.Claimed
	call := &request{
		method: http.MethodPost, path: r.session + "/claims", body: body, answer: &got,
		longest: bulkTime + longestWait, // the answer may have large checkpoints
	}
	if err := r.call(ctx, call); err != nil {
		return redisstate.ClaimResult{}, err
	}
	c := redisstate.ClaimResult{Now: task.At(got.Now), Sent: call.sent, Next: task.Never}
	for i := range got.Tasks {
		c.Claims = append(c.Claims, claimOf(&got.Tasks[i]))
	}
	if len(c.Claims) > body.Most {
		return redisstate.ClaimResult{}, fmt.Errorf("the API returned %d tasks instead of %d", len(c.Claims), body.Most)
	}
	return c, nil
}

// claimOf returns a claim with what the worker needs of its task. Its deadline is the end of the timeout, whether the
// task then times out or expires.
func claimOf(t *broker.ClaimedTask) redisstate.Claim {
	one := &task.Task{
		ID: t.ID, State: task.Running, Round: t.Round, Checkpoint: textOf(t.Checkpoint, t.CheckpointBase64),
		Rounds: task.Rounds{t.Round: {Claim: t.Claim}},
	}
	one.Properties = task.Defaults(t.Program, t.Source, textOf(t.Input, nil))
	one.Group, one.Meta, one.FailOn = t.Campaign, textOf(t.Meta, t.MetaBase64), task.FailOnUnknown
	one.Timeout, one.Fetch, one.Blobs, one.Resources = task.Forever, t.Fetch, t.Blobs, t.Resources
	if t.Seconds != nil {
		one.Timeout = max(task.Seconds(*t.Seconds), task.For(time.Millisecond))
	}
	if t.InputBase64 != nil {
		one.InputEncoding, one.Input = task.InputBase64, base64.StdEncoding.EncodeToString(t.InputBase64)
	}
	if t.After {
		one.Links = 1
	}
	if t.Round > 0 {
		one.Rounds[t.Round-1] = &task.Round{Error: textOf(t.LastError, t.LastErrorBase64)}
	}
	return redisstate.Claim{Task: one, ID: t.Claim, Invalid: invalidTask(one)}
}

// invalidTask returns why the worker cannot run a task, or nil. The name of the program is a part of paths.
func invalidTask(t *task.Task) error {
	if t.ID < 1 || t.Round < 0 || t.Round > task.MaxRound {
		return fmt.Errorf("the API returned a task with the id %d and the round %d", t.ID, t.Round)
	}
	of := task.Defaults(t.Program, t.Source, "")
	of.Group, of.Fetch, of.Blobs, of.Resources = t.Group, t.Fetch, t.Blobs, t.Resources
	return of.Validate()
}

// textOf returns a text that an answer has as it is, or in base64.
func textOf(text *string, encoded []byte) string {
	if text == nil {
		return string(encoded)
	}
	return *text
}

// Earlier returns what the claim has said about earlier rounds.
func (r *Remote) Earlier(_ context.Context, t *task.Task) (checkpoint, lastError string, err error) {
	return t.Checkpoint, t.Rounds.At(t.Round - 1).Error, nil
}

// WriteDependencies writes what a claimed task has waited for. It reads all of it before, so that a connection that
// breaks off does no harm.
func (r *Remote) WriteDependencies(ctx context.Context, t *task.Task, to io.Writer) (unread, err error) {
	var lines []byte
	if unread = r.call(ctx, r.get("/after", t, &lines)); unread != nil {
		return unread, nil
	}
	_, err = to.Write(lines)
	return nil, err
}

// Archive returns the stored program that a claimed task names. If there is none, the error is [fs.ErrNotExist].
func (r *Remote) Archive(ctx context.Context, t *task.Task, sha256 string) (io.ReadCloser, error) {
	var archive []byte
	err := r.call(ctx, r.get("/programs/"+url.PathEscape(sha256), t, &archive))
	if hasStatus(err, http.StatusNotFound) {
		return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(archive)), nil
}

// get returns a call that reads something of a claimed task.
func (r *Remote) get(path string, t *task.Task, answer *[]byte) *request {
	q := url.Values{"id": {fmt.Sprint(t.ID)}, "round": {fmt.Sprint(t.Round)}, "claim": {t.Current().Claim}}
	return &request{
		method: http.MethodGet, path: r.session + path + "?" + q.Encode(), answer: answer, longest: archiveTime,
	}
}
