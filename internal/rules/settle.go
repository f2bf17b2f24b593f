package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
)

// Settle returns the Move that the server makes with the task at the time now (docs/lifecycle.md, "What the server
// decides"). If [ParseTask] returned an error, the caller passes it as invalid. Settle returns false if there is
// nothing to settle yet. In this case, [NextDue] returns when to call Settle again.
func Settle(t *task.Task, now task.Time, invalid error) (Move, bool) {
	var m Move
	var err error
	switch {
	case t.State == task.Open && invalid != nil:
		m, err = reject(t, invalid.Error())
	case t.State == task.Open && now >= t.OpenUntil():
		m, err = expire(t)
	case t.Waits():
		return settleWaiting(t)
	case t.State == task.Running:
		return settleRunning(t, now)
	case t.State == task.Executed:
		return settleResult(t)
	case t.State.Finished() && t.Dependents > 0:
		return Move{}, false
	case t.State.Finished() && now >= removeAt(t):
		m, err = Remove(t)
	case t.State.Finished() && now >= removeOutputsAt(t):
		m = removeOutputs(t)
	default:
		return Move{}, false
	}
	return m, err == nil
}

func settleRunning(t *task.Task, now task.Time) (Move, bool) {
	var m Move
	var err error
	switch {
	case now > runningUntil(t):
		m, err = expire(t)
	case isTimedOut(t, now):
		m, err = TimeOut(t)
	case t.Current().Claim != "" && now >= t.LeaseUntil && mayHaveWaited(t):
		m, err = unclaim(t, "its worker "+t.Current().Worker+" is gone, and had only prefetched it")
	case t.Current().Claim != "" && now >= t.LeaseUntil:
		m, err = lose(t, task.Running)
	default:
		return Move{}, false
	}
	return m, err == nil
}

// mayHaveWaited reports whether the worker of a prefetched task had perhaps not started its program. A task that must
// not run after a loss counts as started.
func mayHaveWaited(t *task.Task) bool {
	r := t.Current()
	return r.Prefetched && r.Started == 0 && t.MaxLosses > 0
}

// isTimedOut reports whether the server times out the current round of a running task.
func isTimedOut(t *task.Task, now task.Time) bool {
	switch {
	case t.Current().Claim == "":
		return now >= deadline(t).Add(unclaimedMargin)
	case leaseHolds(t, now):
		return now > deadline(t).Add(TimeoutMargin)
	}
	return now > deadline(t)
}

// unclaimedMargin is the time between the deadline of a round without a claim and the moment when the server times out
// the round. A worker of the original TDF ends its program at the deadline, and dies if the server has already ended
// the round.
const unclaimedMargin = task.Seconds(1)

// TimeoutMargin is the time between the deadline and the moment when the server times out a round whose lease still
// holds. In this time, the worker ends the program and reports its output.
const TimeoutMargin = task.Seconds(10)

// ServerAbsence is the time without a heartbeat after which a server counts as absent. It is also the shortest leap of
// Redis's clock that a server notices. Because both times are equal, all servers count as absent after a leap forward,
// until their next heartbeat.
const ServerAbsence = task.Seconds(5)

// leaseHolds reports whether the current round has a claim whose lease has not run out.
func leaseHolds(t *task.Task, now task.Time) bool {
	return t.Current().Claim != "" && now < t.LeaseUntil
}

// settleResult returns the Move that settles an executed task: the task expires if it was executed after its
// end_before, and otherwise fails or succeeds. It returns false if the task is in another state, or if its result is
// not whole. Unlike other decisions, this one depends on no clock and on no grace period, so the one who has stored the
// result may make it at once.
func settleResult(t *task.Task) (Move, bool) {
	var m Move
	var err error
	r := t.Current()
	switch {
	case t.State != task.Executed || !r.Committed:
		return Move{}, false
	case r.Entered[task.Executed] > t.EndBefore:
		m, err = expire(t)
	case HasFailed(r, t.FailOn):
		m, err = fail(t)
	default:
		m, err = move(t, VerbSucceed, task.Succeeded)
	}
	return m, err == nil
}

// NextDue returns the time at which the server must check the task again if Settle returns false at the time now. It
// returns Never if only a manager, a worker or a user can change the task.
func NextDue(t *task.Task, now task.Time) task.Time {
	switch t.State {
	case task.Open:
		if t.Waits() {
			return endOfWait(t)
		}
		return t.OpenUntil()
	case task.Running:
		if t.Current().Claim != "" {
			return min(deadline(t).Add(TimeoutMargin), runningUntil(t), t.LeaseUntil)
		}
		// a worker of the original TDF has no claim and no lease
		return min(deadline(t).Add(unclaimedMargin), t.EndBefore, now.Add(recheckInterval))
	case task.Executed:
		// a worker of the original TDF may still be writing the result; if the result stays incomplete, the audit
		// repairs the task
		return now.Add(1)
	}
	if t.State.Finished() {
		next := nextRemoval(t)
		if next < task.Never && t.Dependents > 0 {
			next = max(next, now.Add(neededPause))
		}
		return next
	}
	return task.Never
}

// recheckInterval is the longest time between two checks of a running task without a lease.
const recheckInterval = task.Seconds(60)

// runningUntil returns the time after which a running task expires. It is the task's end_before, unless the worker has
// reported that the program has ended: only then can the deadline be later than end_before. Until this deadline, the
// worker ends the processes that the program left behind, and collects the output.
func runningUntil(t *task.Task) task.Time {
	if t.Current().Claim != "" && t.Deadline < task.Never {
		return max(t.EndBefore, t.Deadline)
	}
	return t.EndBefore
}

// deadline returns the time at which the current round times out.
func deadline(t *task.Task) task.Time {
	r := t.Current()
	switch {
	case r.Claim != "" && t.Deadline > 0:
		return t.Deadline
	case r.Entered[task.Running] == 0:
		// a worker of the original TDF is still writing its claim; if the claim stays incomplete, the audit repairs the
		// task
		return task.Never
	}
	return max(r.Entered[task.Running], r.Started).Add(t.Timeout)
}

// HasFailed reports whether an executed round counts as failed under the rule f.
func HasFailed(r *task.Round, f task.FailOn) bool {
	if f == task.FailOnStderr || r.Exit == "" || strings.HasPrefix(r.Exit, exitSignal) {
		return r.HasError || strings.HasPrefix(r.Exit, exitSignal)
	}
	if f == task.FailOnUnknown {
		return r.Exit != "0" && r.HasError
	}
	return r.Exit != "0" || f == task.FailOnAny && r.HasError
}

const exitSignal = "signal:"

// endOrReopen returns a Move that reopens the task if its counter is below the limit. If the counter has reached the
// limit, the Move changes the task's state to end. The caller passes the value of the counter before the Move raises
// it.
func endOrReopen(t *task.Task, v Verb, count, limit int, end task.State) (Move, error) {
	if count < limit && t.Round < task.MaxRound && !isLastAttempt(t) {
		return move(t, v, task.Open)
	}
	return move(t, v, end)
}

// isLastAttempt reports whether max_attempts allows no further round if the current one fails, times out or is lost.
func isLastAttempt(t *task.Task) bool {
	return t.MaxAttempts > 0 && t.Fails+t.Timeouts+t.Losses+1 >= t.MaxAttempts
}

func fail(t *task.Task) (Move, error) {
	tolerated, what := t.MaxFails, "failed"
	if t.Current().Permanent {
		tolerated, what = 0, "failed for good"
	}
	m, err := endOrReopen(t, VerbFail, t.Fails, tolerated, task.Failed)
	m.stamp(task.RoundFailure, Now)
	m.Note = withReopened(m, what)
	m.backOff(t)
	return m, err
}

// TimeOut returns a Move that ends the current round because it ran for longer than the task's timeout. Use
// [Move.WithResult] to add the output of the program.
func TimeOut(t *task.Task) (Move, error) {
	m, err := endOrReopen(t, VerbTimeOut, t.Timeouts, t.MaxTimeouts, task.TimedOut)
	m.stamp(task.RoundTimeout, Now)
	m.Note = withReopened(m, "timed out")
	m.backOff(t)
	return m, err
}

// lose ends the current round because its lease ran out. In Redis, the task has the state found. This state is running,
// except if the audit repairs an inconsistent task.
func lose(t *task.Task, found task.State) (Move, error) {
	running := *t
	running.State = task.Running
	m, err := endOrReopen(&running, VerbLose, t.Losses, t.MaxLosses, task.Failed)
	m.From = found
	m.stamp(task.RoundLost, Now)
	m.Note = withReopened(m, "lost with its worker "+t.Current().Worker)
	if m.To == task.Failed {
		why := fmt.Sprintf("%d times, and only %d are tolerated (max_losses)", t.Losses+1, t.MaxLosses)
		switch {
		case t.Losses >= t.MaxLosses:
		case isLastAttempt(t):
			why = fmt.Sprintf("in the last of %d attempts (max_attempts)", t.MaxAttempts)
		default:
			why = fmt.Sprintf("in round %d, the last one that a task can have", t.Round)
		}
		m.setRound(task.RoundError, fmt.Sprintf("lost with its worker %s; the workers: %s", why,
			strings.Join(lostWorkers(t), ", ")))
	}
	return m, err
}

func lostWorkers(t *task.Task) []string {
	var names []string
	for i, r := range t.Rounds.All() {
		if (r.LostAt > 0 || i == t.Round) && r.Worker != "" {
			names = append(names, r.Worker)
		}
	}
	return names
}

func withReopened(m Move, ending string) string {
	if m.To == task.Open {
		return ending + ", reopened"
	}
	return ending
}

func expire(t *task.Task) (Move, error) { return move(t, VerbExpire, task.Expired) }

// Expire returns a Move that expires the task. A worker that claims tasks uses it for open tasks for which the time
// of [Properties.OpenUntil] has passed.
func Expire(t *task.Task) (Move, error) { return expire(t) }

// reject moves an invalid open task to the state failed.
func reject(t *task.Task, reason string) (Move, error) {
	m, err := move(t, VerbReject, task.Failed)
	m.setRound(task.RoundError, reason)
	m.Note = "failed: " + oneLine(reason)
	return m, err
}

// Release returns a Move with which a worker returns a running task: the task is reopened, and the round does not count
// as a failure. The error is [ErrLastRound] if the task can have no further round.
func Release(t *task.Task, reason string) (Move, error) {
	if t.Round >= task.MaxRound {
		return Move{}, ErrLastRound
	}
	m, err := move(t, VerbRelease, task.Open)
	m.Note = "released: " + oneLine(reason)
	return m, err
}

// Unclaim returns a Move with which a worker gives a prefetched task back before its program has started: the task is
// open again, in the same round and at the same position of its queue, and nothing is counted (docs/lifecycle.md,
// "Prefetched tasks").
func Unclaim(t *task.Task, why string) (Move, error) {
	m, err := unclaim(t, why)
	m.Clear = append(m.Clear, task.RoundField(m.Round, task.RoundPrefetched))
	return m, err
}

// unclaim does the work of Unclaim for the task of a worker that is gone. The round keeps its property prefetched, so
// that no worker prefetches the task again: if the program had just started, and has ended the worker, the next such
// loss counts.
func unclaim(t *task.Task, why string) (Move, error) {
	m, err := move(t, VerbUnclaim, task.Open)
	m.Note = "unclaimed: " + oneLine(why)
	since := t.ClaimableFrom()
	m.Score = Moment{Min: since, Max: since}
	m.Claim = t.Current().Claim
	for _, name := range []string{string(task.Running), task.RoundWorker, task.RoundClaim} {
		m.Clear = append(m.Clear, task.RoundField(m.Round, name))
	}
	return m, err
}

// maxUnfitHosts is how many counted releases a task can have because the hosts of its workers cannot run its program.
const maxUnfitHosts = 3

// ReleaseUnfit returns a Move that releases a running task because the worker's host cannot run its program. If another
// worker is left that has not tried the task, the task is put off for this one until the given time. Otherwise the time
// is 0, and the release counts: the task waits for 1, 2 and 4 s. ReleaseUnfit returns false if the task has had three
// counted releases, or if it can have no further round. The round then counts as failed (docs/lifecycle.md, "Released
// rounds").
func ReleaseUnfit(t *task.Task, reason string, putOff task.Time) (Move, bool) {
	if t.UnfitHosts >= maxUnfitHosts && putOff == 0 {
		return Move{}, false
	}
	m, err := Release(t, reason)
	if putOff == 0 {
		m.set(task.FieldUnfit, fmt.Sprint(t.UnfitHosts+1))
		m.delay(t, leastDelay*task.Seconds(int(1)<<t.UnfitHosts)) // the host may be repaired, or another worker may start
	} else {
		m.refuse(t, task.NotOn{Worker: t.Current().Worker, Until: putOff})
	}
	return m, err == nil
}

// Archive returns a Move that archives a finished task after its manager has handled it.
//
// The round's claim is a fence of the Move. After a failover, Redis may have lost the end of the round, and another
// claim may end the same round with another result. With the fence, a manager archives only the result that it has
// handled (docs/guarantees.md, "Transitions").
func Archive(t *task.Task) (Move, error) {
	m, err := move(t, VerbArchive, task.Archived)
	m.Claim = cmp.Or(t.Current().Claim, NoClaim)
	return m, err
}

// Cancel returns a Move that ends an open or running task. The task expires with the outcome [Cancelled].
func Cancel(t *task.Task) (Move, error) {
	m, err := move(t, VerbCancel, task.Expired)
	m.Note = "cancelled"
	return m, err
}

// Requeue returns a Move with which an operator takes a running task from its worker. The task is reopened, and the
// round does not count as a failure. If the task must run elsewhere, that worker cannot claim the task again.
func Requeue(t *task.Task, elsewhere bool) (Move, error) {
	m, err := Release(t, "requeued")
	not := task.NotOn{Worker: t.Current().Worker, Until: task.Never}
	if worker := not.Worker; err == nil && elsewhere && worker != "" && !slices.Contains(t.NotOn, not) {
		m.refuse(t, not)
		m.Note += ", no longer for " + worker
	}
	return m, err
}

// Remove returns a Move that deletes a finished task and its outputs. A user makes this Move, or the server when the
// task's retention period is over.
func Remove(t *task.Task) (Move, error) {
	if err := needed(t); err != nil && t.State.Finished() {
		return Move{}, err
	}
	m, err := move(t, VerbRemove, task.None)
	m.Unique = t.Unique
	return m, err
}

// Replace returns a Move that removes an open task, because its opener has replaced it by another task, or has no more
// use for it. The error is a *[StateError] if the task is not open, or another error if other tasks need it.
func Replace(t *task.Task) (Move, error) {
	if err := needed(t); err != nil && t.State == task.Open {
		return Move{}, err
	}
	m, err := move(t, VerbReplace, task.None)
	m.Unique = t.Unique
	return m, err
}

// ErrLastRound means that the task is in round [MaxRound] and can have no further round.
var ErrLastRound = task.NewError(task.CodeConflict,
	fmt.Sprintf("it is in round %d, the last one that a task can have", task.MaxRound))

// Reopen returns a Move that reopens a finished task for a user. Of the task's counters, the Move changes only
// reopens. The error is [ErrLastRound] if the task can have no further round.
func Reopen(t *task.Task) (Move, error) {
	m, err := reopen(t)
	m.startOver(t, &t.Properties)
	return m, err
}

func reopen(t *task.Task) (Move, error) {
	if t.Round >= task.MaxRound {
		return Move{}, ErrLastRound
	}
	m, err := move(t, VerbReopen, task.Open)
	m.Unique = t.Unique
	m.Clear = append(m.Clear, task.FieldOutcome, task.FieldNotOn)
	if t.Ready > 0 {
		// ready still has a value if a round that was put off ended before a worker claimed it
		m.Clear = append(m.Clear, task.FieldReady)
	}
	m.Note = "reopened by hand"
	return m, err
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// maxNotOn is how many lines of users the property not_on keeps, and how many with a time: the last ones. So workers
// that put the task off push out no line of a user.
const maxNotOn = 16

// refuse adds a line to the property not_on, instead of an earlier one for the same worker. A line of a user remains.
func (m *Move) refuse(t *task.Task, n task.NotOn) {
	var ofUsers, timed []string
	add := func(n task.NotOn) {
		lines := &timed
		if n.Until >= task.Never {
			lines = &ofUsers
		}
		*lines = append(*lines, n.String())
	}
	for _, other := range t.NotOn {
		if other.Worker == n.Worker {
			n.Until = max(n.Until, other.Until)
		} else {
			add(other)
		}
	}
	add(n)
	last := func(lines []string) []string { return lines[max(0, len(lines)-maxNotOn):] }
	m.set(task.FieldNotOn, strings.Join(append(last(ofUsers), last(timed)...), "\n"))
}
