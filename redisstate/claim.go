package redisstate

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"time"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/index"
)

// ClaimParams ask for tasks for a worker.
type ClaimParams struct {
	Worker string
	Most   int // the largest number of tasks to claim, from 1 to 1,000; with Prefetch, also 0
	Lease  task.Seconds

	// Prefetch is how many further tasks the worker would claim before it has free slots for them (docs/lifecycle.md,
	// "Prefetched tasks"). The claim may return fewer, and marks them with [task.Round].Prefetched.
	Prefetch int

	// Call lets any client repeat the claim. IDs is then the same for each repetition: it is the first part of the
	// claim ids. Nil and "" mean that only this client repeats the claim.
	Call *ClaimCall
	IDs  string

	// Offer says which tasks the worker may claim. The claim serves its queues in order. Nil means tasks without a
	// queue, tags and a handler.
	Offer *class.Offer

	// Free is what the worker has free. The claim gets no more tasks than fit. Nil means that the worker offers no
	// resources: it gets only tasks that ask for nothing.
	Free class.Capacities

	// Whole is what a worker with Free has when it runs nothing. If a task that fits in it has been the first one for a
	// minute, the worker is kept for it (docs/resources.md, "No task starves").
	Whole class.Capacities

	// TimeLeft is how long the worker still runs, if it has a time limit. It gets no task with a longer min_time. 0
	// means no limit.
	TimeLeft task.Seconds
}

// A Claim is a task that was handed to a worker for one round.
type Claim struct {
	Task    *task.Task // the task, now running, without the texts of earlier rounds
	ID      string     // identifies this run in the worker's reports
	Invalid error      // the reason why the task is invalid, or nil; the error of the round has this text
}

// ClaimResult is the answer of [Store.Claim].
type ClaimResult struct {
	Claims []Claim
	Now    task.Time // time of the claim by Redis's clock
	Sent   time.Time // time by this machine's clock just before the call was first sent; the leases begin later
	// when the next open task becomes due; Never if no task will, or if the claim got as many tasks as it asked for
	Next task.Time

	// More means that the claim stopped before it had read all due tasks. The other due tasks may suit this worker.
	More bool

	// Kept means that the worker is kept for a task that does not fit yet. It must claim again when more is free, or at
	// the time Next, and must not wait for a token meanwhile, because tokens are for other workers.
	Kept bool

	// Unwanted is the number of due tasks that did not suit this worker. For these tasks, the claim has put a wake
	// token into Redis, for another worker. This worker must pause instead of waiting for a token, because it would get
	// the new token itself.
	Unwanted int

	// MustWait means that Redis has too little memory for claims, so that the call claimed nothing. This worker must
	// pause for [RoomPause].
	MustWait bool

	// Queues are the queues that the claim has served, in order. Taken has the number of claims from each of them.
	Queues []string
	Taken  []int

	// Stale means that the claim could not get all tasks, because there are new requirements. The next claim knows them.
	Stale bool
}

// claimProperties are the properties that a worker needs. The script claim.lua relies on the order of the first 13
// properties, and on the last six.
var claimProperties = []string{
	"state", "round", "start_after", "end_before", "timeout", "group", "log", "program", "input",
	"not_on", "source", "meta", "blobs", "fail_on", "max_timeouts", "timeouts", "releases", "unfit", "links", "0:open",
	"ready", "keep_finished", "keep_outputs",
	"revision", "0:prefetched", "fetch", "claim_before", "limit_key", "input_encoding", "resources",
}

// Claim hands open tasks of a worker's queues to the worker: those with the highest priority first, and among them
// those that have been due for the longest time. It expires the overdue tasks that it finds.
func (s *Store) Claim(ctx context.Context, r ClaimParams) (ClaimResult, error) {
	return s.claimAndExpire(ctx, r, func([]rules.Move) {})
}

// claimAndExpire does the same as Claim, and passes the Moves of the expired tasks to a function. It does not collect
// the Moves in memory: after a long time without workers, a million tasks may be overdue.
func (s *Store) claimAndExpire(ctx context.Context, r ClaimParams, expired func([]rules.Move)) (ClaimResult, error) {
	for {
		c, overdue, err := s.claim(ctx, r)
		if err != nil || len(c.Claims) > 0 || len(overdue) == 0 {
			return c, err
		}
		cleared, err := s.expireOverdue(ctx, r.Worker, overdue, c.Now)
		expired(cleared)
		if err != nil || len(cleared) == 0 {
			return c, err
		}
	}
}

const claimTasks = "claim tasks"

func (s *Store) claim(ctx context.Context, r ClaimParams) (ClaimResult, []int64, error) {
	if s.claimsMustWait(ctx) {
		return ClaimResult{Next: task.Never, MustWait: true}, nil, nil
	}
	for tries := 1; ; tries++ {
		start := time.Now()
		anyway := tries > mostStale
		args, queues := s.claimArgs(r, anyway)
		reply, err := s.callClaim(ctx, &r, args, anyway, claimForm(len(queues)))
		if err != nil {
			return ClaimResult{}, nil, err
		}
		s.link.observe(replySize(reply), time.Since(start))
		c, overdue := s.readClaimed(r.Worker, queues, reply)
		if err := s.learnRequirements(ctx, r.offer(), reply, &c); err != nil && len(c.Claims) == 0 {
			return c, overdue, err
		}
		if r.Call == nil || !r.Call.Repeated {
			s.countClaims(&c)
		}
		c.Sent = start
		if !c.Stale || len(c.Claims) > 0 || anyway || ctx.Err() != nil {
			c.More = c.More || c.Stale
			return c, overdue, nil
		}
	}
}

func (s *Store) claimKeys(offer *class.Offer) []string {
	return []string{
		s.Keys.Calls(s.Conn.Boot()), s.Keys.Due(), s.Keys.List(task.Running), s.Keys.List(task.Open),
		s.Keys.Paused(), s.Keys.Workers(), s.servesKey(offer),
	}
}

// mostStale bounds how often a claim begins anew because there are new requirements. Then it claims all the same, and
// may overlook their tasks.
const mostStale = 3

// claimArgs returns a function that builds the arguments of claim.lua from a call slot and a sequence number. It also
// returns the queues that the claim serves.
func (s *Store) claimArgs(r ClaimParams, anyway bool) (func(slot int, sequence uint64) []any, []string) {
	random := cmp.Or(r.IDs, rand.Text())
	bytes := s.link.bytesWithin(r.Lease.Std() / claimShare)
	offer := r.offer()
	var queues []string
	for _, share := range offer.Shares() {
		queues = append(queues, share.Queue)
	}
	most := min(r.Most, maxTasksPerCall)
	prefetch := min(r.Prefetch, maxTasksPerCall-most)
	if prefetch <= 0 {
		most, prefetch = max(most, 1), 0
	}
	plain := offer.Group == "" && slices.Contains(queues, class.DefaultQueue) &&
		class.Serves(offer, class.Requirement{Queue: class.DefaultQueue})
	return func(slot int, sequence uint64) []any {
		e := &conn.Args{All: []any{
			strconv.Itoa(slot), sequence, s.Keys.TaskPrefix(), s.Keys.GroupPrefix(), index.GroupCode(task.Running),
			r.Worker, most, r.Lease.String(), random,
			bytes, rules.TimeoutMargin.String(),
		}}
		e.Flag(plain)
		e.Count(prefetch)
		e.Add(r.timeLeft())
		e.Flag(anyway)
		e.Strings(claimProperties)
		e.Add(class.GroupPart(offer.Group))
		r.addFree(e)
		e.Strings(queues)
		return e.All
	}, queues
}

// claimForm is the form of the answer of claim.lua to a claim from a number of queues.
func claimForm(queues int) conn.ReplyForm {
	claim := conn.Tuple(conn.IsText, conn.IsText, conn.ListOf(0, len(claimProperties), conn.OrNil(conn.IsText)))
	return conn.Tuple(
		conn.IsText, conn.IsText, conn.ManyTexts, conn.ListOf(0, maxTasksPerCall, claim), conn.IsText, conn.IsText,
		conn.ListOf(0, queues, conn.IsNumber), conn.IsText,
	)
}

// The elements of the answer.
const (
	claimReplyNow = iota
	claimReplyNext
	claimReplyOverdue
	claimReplyClaims
	claimReplyMore
	claimReplyUnwanted
	claimReplyTaken
	claimReplySeen
)

func (s *Store) readClaimed(worker string, queues []string, reply any) (c ClaimResult, overdue []int64) {
	c = ClaimResult{Next: task.Never}
	parts := conn.List(reply)
	c.Now, _ = task.ParseTime(conn.Text(parts[claimReplyNow]))
	if next := conn.Text(parts[claimReplyNext]); next != "" {
		c.Next, _ = task.ParseTime(next)
	}
	more := conn.Text(parts[claimReplyMore])
	c.Kept, c.More = more == "kept", more == "1"
	c.Unwanted, _ = strconv.Atoi(conn.Text(parts[claimReplyUnwanted]))
	for i, n := range conn.List(parts[claimReplyTaken]) {
		if taken := conn.Number(n); taken >= 0 { // the queue is not paused
			c.Queues, c.Taken = append(c.Queues, queues[i]), append(c.Taken, taken)
		}
	}
	for _, id := range conn.List(parts[claimReplyOverdue]) {
		n, _ := strconv.ParseInt(conn.Text(id), 10, 64)
		overdue = append(overdue, n)
	}
	claims, h := conn.List(parts[claimReplyClaims]), task.Hash{}
	c.Claims = make([]Claim, len(claims))
	for i, t := range claims {
		clear(h)
		c.Claims[i] = readClaim(worker, conn.List(t), c.Now, h)
	}
	c.nameQueues()
	return c, overdue
}

// nameQueues sets the queues of the claimed tasks, which come in the order of the queues.
func (c *ClaimResult) nameQueues() {
	next := 0
	for i, n := range c.Taken {
		for range min(n, len(c.Claims)-next) {
			if c.Queues[i] != class.DefaultQueue {
				c.Claims[next].Task.Queue = c.Queues[i]
			}
			next++
		}
	}
}

// readClaim reads a claim. The empty hash h saves the memory of a new one.
func readClaim(worker string, parts []any, now task.Time, h task.Hash) Claim {
	for i, value := range conn.List(parts[2]) {
		if value != nil {
			h[claimProperties[i]] = conn.Text(value)
		}
	}
	id, _ := strconv.ParseInt(conn.Text(parts[0]), 10, 64)
	t, invalid := task.ParseTask(id, h)
	t.State = task.Running
	r := t.Current()
	r.Claim, r.Worker = conn.Text(parts[1]), worker
	if r.Entered == nil {
		r.Entered = map[task.State]task.Time{}
	}
	r.Entered[task.Running] = now
	return Claim{Task: t, ID: r.Claim, Invalid: invalid}
}

// expireOverdue reads the tasks, and expires each task that must not be open any more. If the clock may have leapt, the
// server decides. It writes a leap before its next heartbeat, so its heartbeat is read first. In a namespace that never
// had a server, nothing says whether the clock is right.
func (s *Store) expireOverdue(ctx context.Context, worker string, ids []int64, now task.Time) (cleared []rules.Move,
	err error,
) {
	server, err := s.Presence.LastServerHeartbeat(ctx)
	if err != nil || server > 0 && max(now.Sub(server), server.Sub(now)) >= rules.ServerAbsence {
		return nil, err
	}
	grace, err := s.Presence.Grace(ctx)
	if err != nil || now < grace.Open {
		return nil, err
	}
	seen, err := s.Read(ctx, ids, Want{Fields: Rules})
	if err != nil {
		return nil, err
	}
	var moves []rules.Move
	for _, t := range seen {
		if t.Task == nil {
			continue
		}
		if m, err := rules.Expire(t.Task); err == nil && t.Task.State == task.Open && now >= t.Task.OpenUntil() {
			moves = append(moves, m)
		}
	}
	outcomes, err := s.Apply(ctx, worker, unitsOf(moves)...)
	for i, o := range outcomes {
		if o.Err == nil {
			cleared = append(cleared, moves[i])
		}
	}
	return cleared, err
}
