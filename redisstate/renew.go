package redisstate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// A LeaseRenewal extends the lease of a claim, and carries the worker's report about the round.
type LeaseRenewal struct {
	ID    int64
	Round int
	Claim string

	// Begun means that the worker has fetched the program and starts it now. The task's timeout counts from this
	// renewal.
	Begun bool
	// Limit is the time from now to the new deadline of the claim. The deadline is never later than the task's
	// end_before. If Limit is 0, the deadline stays unchanged. After the program has begun, Limit has an effect only if
	// Ended is true. Ended means that the program has ended, and that the worker collects its output for at most Limit.
	// An earlier deadline then moves to the end of this time, even if that is after end_before. The task does not expire
	// before this deadline.
	Limit task.Seconds
	Ended bool

	Report LiveReport
}

// A LiveReport is a worker's report about a running round. If a field is nil or 0, the property in Redis stays
// unchanged.
type LiveReport struct {
	Tail       *task.Tail   // the last output of the program
	Silent     task.Seconds // time since the program's last output; ignored if Tail is nil
	Runs       bool         // the program of a prefetched task runs, so the task no longer counts as prefetched
	Progress   *string      // a number from 0 to 1, a space, and a text
	Checkpoint *string

	// Updates are the lines that the program has reported. The first of them has the number FirstUpdate in the round,
	// counted from 1. If Redis already has an update, it is not added again.
	Updates     []string
	FirstUpdate int
}

// RenewResult is the answer of [Store.Renew]. Each slice has one element for each renewal.
type RenewResult struct {
	Now      task.Time // time by Redis's clock
	Lost     []error   // *[rules.StateError] if the worker no longer has the claim; otherwise nil
	Followed []bool    // whether a user watches the output of the round

	// Sent is the time by this machine's clock just before the renewal was last sent. The new lease begins later.
	Sent []time.Time
}

// Renew extends the leases of claims, and stores the workers' reports. A lease that ends later stays as it is. If the
// lease is 0, Renew ends the leases, so that the server settles the tasks as lost.
func (s *Store) Renew(ctx context.Context, lease task.Seconds, renewals ...LeaseRenewal) (RenewResult, error) {
	all := RenewResult{
		Lost: make([]error, len(renewals)), Followed: make([]bool, len(renewals)),
		Sent: make([]time.Time, len(renewals)),
	}
	pieces, owners := renewalPieces(renewals)
	for len(pieces) > 0 {
		answers, now, sent, err := s.renew(ctx, lease, pieces[:renewalBatch(pieces)])
		if err != nil {
			return all, fmt.Errorf("renew leases: redis: %w", err)
		}
		all.Now = now
		for i, answer := range answers {
			all.read(owners[i], answer)
			all.Sent[owners[i]] = sent
		}
		pieces, owners = pieces[len(answers):], owners[len(answers):]
	}
	return all, nil
}

// maxUpdatesPerCall is the largest number of updates in a call. It is smaller than maxTasksPerCall, because an update
// costs Redis more than a renewal.
const maxUpdatesPerCall = 500

// renewalPieces splits renewals that have too many updates for one call. For each piece, owners contains the index of
// its renewal.
func renewalPieces(renewals []LeaseRenewal) (pieces []LeaseRenewal, owners []int) {
	for i, r := range renewals {
		for len(r.Report.Updates) > maxUpdatesPerCall {
			piece := r
			piece.Report.Updates = r.Report.Updates[:maxUpdatesPerCall]
			pieces, owners = append(pieces, piece), append(owners, i)
			r = LeaseRenewal{ID: r.ID, Round: r.Round, Claim: r.Claim, Report: LiveReport{
				Updates:     r.Report.Updates[maxUpdatesPerCall:],
				FirstUpdate: max(r.Report.FirstUpdate, 1) + maxUpdatesPerCall,
			}}
		}
		pieces, owners = append(pieces, r), append(owners, i)
	}
	return pieces, owners
}

// renewalBatch returns how many of the renewals fit into the next call. It returns at least 1.
func renewalBatch(renewals []LeaseRenewal) int {
	return conn.Batch(len(renewals), conn.AtMost(maxTasksPerCall),
		conn.Bound{Limit: maxBytesPerCall, Amount: func(i int) int { return renewals[i].Report.size() }},
		conn.Bound{Limit: maxUpdatesPerCall, Amount: func(i int) int { return len(renewals[i].Report.Updates) }})
}

func (r *LiveReport) size() int {
	bytes := 0
	if r.Tail != nil {
		bytes = len(r.Tail.Text)
	}
	for _, text := range []*string{r.Progress, r.Checkpoint} {
		if text != nil {
			bytes += len(*text)
		}
	}
	for _, line := range r.Updates {
		bytes += len(line)
	}
	return bytes
}

// Renew makes one call, and returns the answers to the first renewals. If the call takes too long, the script leaves
// out the last renewals. It answers at least one.
func (s *Store) renew(ctx context.Context, lease task.Seconds, renewals []LeaseRenewal) (
	answers []string, now task.Time, sent time.Time, err error,
) {
	e := &conn.Args{}
	e.Add(s.Keys.TaskPrefix(), s.Keys.UpdatesPrefix(), s.Keys.FollowPrefix(), lease.String(),
		rules.TimeoutMargin.String())
	for i := range renewals {
		addRenewal(e, &renewals[i])
	}
	reply, sent, err := s.Conn.RunAt(ctx, lua.Renew, []string{s.Keys.Due()}, e.All, conn.ListOf(2, len(renewals)+1,
		conn.IsText))
	if err != nil {
		return nil, 0, sent, err
	}
	parts := conn.List(reply)
	now, _ = task.ParseTime(conn.Text(parts[0]))
	for _, part := range parts[1:] {
		answers = append(answers, conn.Text(part))
	}
	return answers, now, sent, nil
}

// read stores the answer to renewal i, or to a piece of this renewal.
func (all *RenewResult) read(i int, answer string) {
	if strings.HasPrefix(answer, "+") {
		all.Followed[i] = answer == "+f"
		return
	}
	found := parseFound(answer)
	found.Verb = "renew"
	all.Lost[i] = found
}

func addRenewal(e *conn.Args, r *LeaseRenewal) {
	begun, limit := "", ""
	switch {
	case r.Begun:
		begun = "1"
	case r.Ended:
		begun = "2"
	}
	if r.Limit > 0 {
		limit = r.Limit.String()
	}
	silent := ""
	if r.Report.Tail != nil {
		silent = max(r.Report.Silent, 0).String()
	}
	e.All = append(e.All, r.ID, r.Round, r.Claim, begun, limit, silent)
	addFields(e, r.Report.fields(r.Round))
	e.Count(max(r.Report.FirstUpdate, 1))
	e.Strings(r.Report.Updates)
}

func (r *LiveReport) fields(round int) []task.Field {
	var fields []task.Field
	if r.Tail != nil {
		fields = []task.Field{
			{Name: task.RoundField(round, task.RoundTail), Value: r.Tail.Text},
			{Name: task.RoundField(round, task.RoundTailEnd), Value: r.Tail.TailEnd.String()},
		}
	}
	for _, f := range []struct {
		name  string
		value *string
	}{
		{task.RoundField(round, task.RoundProgress), r.Progress},
		{task.FieldCheckpoint, r.Checkpoint},
	} {
		if f.value != nil {
			fields = append(fields, task.Field{Name: f.name, Value: *f.value})
		}
	}
	if r.Runs {
		fields = append(fields, task.Field{Name: task.RoundField(round, task.RoundPrefetched)})
	}
	return fields
}

const readRunning = "read the running tasks"

// GiveUp ends the leases of a worker that is gone, so that the server settles its tasks as lost. It returns the number
// of these tasks. Another worker took the name at the time before. GiveUp ends only older claims. Later claims belong
// to that worker, or to a later owner of the name. The server unclaims the tasks that the worker had only prefetched.
func (s *Store) GiveUp(ctx context.Context, name string, before task.Time) (int, error) {
	running := s.Keys.List(task.Running)
	given := map[int64]bool{}
	end, err := conn.Ask(ctx, s.Conn, readRunning, func(r redis.Cmdable) *redis.IntCmd { return r.ZCard(ctx, running) })
	if err != nil {
		return 0, err
	}
	// A task that leaves the list moves all later tasks forward. So the pages are read from the end of the list to its
	// beginning: then a moved task is read twice, instead of never.
	for ; end > 0; end -= maxTasksPerCall {
		members, err := conn.Ask(ctx, s.Conn, readRunning, func(r redis.Cmdable) *redis.StringSliceCmd {
			return r.ZRange(ctx, running, max(0, end-maxTasksPerCall), end-1)
		})
		if err != nil {
			return len(given), err
		}
		if err := s.giveUpClaims(ctx, name, before, conn.IDsOf(members), given); err != nil {
			return len(given), err
		}
	}
	return len(given), nil
}

// giveUpClaims does the work of GiveUp for some running tasks. For each claim whose lease it ends, it adds the task's
// id to the map given.
func (s *Store) giveUpClaims(ctx context.Context, name string, before task.Time, ids []int64,
	given map[int64]bool,
) error {
	running, err := s.Read(ctx, ids, Want{Fields: Rules})
	if err != nil {
		return err
	}
	var renewals []LeaseRenewal
	for _, seen := range running {
		t := seen.Task
		if t == nil || t.State != task.Running || given[t.ID] {
			continue
		}
		if r := t.Current(); r.Worker == name && r.Claim != "" && r.Entered[task.Running] < before {
			renewals = append(renewals, LeaseRenewal{ID: t.ID, Round: t.Round, Claim: r.Claim})
		}
	}
	if _, err = s.Renew(ctx, 0, renewals...); err != nil {
		return err
	}
	for _, r := range renewals {
		given[r.ID] = true
	}
	return nil
}
