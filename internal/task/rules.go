package task

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Settle returns the Move that the server makes with the task at the time now (docs/lifecycle.md, "What the server
// decides"). If [ParseTask] returned an error, the caller passes it as invalid. Settle returns false if there is
// nothing to settle yet. In this case, [Task.NextDue] returns when to call Settle again.
func (t *Task) Settle(now Time, invalid error) (Move, bool) {
	var m Move
	var err error
	switch {
	case t.State == Open && invalid != nil:
		m, err = t.reject(invalid.Error())
	case t.State == Open && now >= t.OpenUntil():
		m, err = t.expire()
	case t.Waits():
		return t.settleWaiting()
	case t.State == Running:
		return t.settleRunning(now)
	case t.State == Executed:
		return t.settleResult()
	case t.State.Finished() && t.Dependents > 0:
		return Move{}, false
	case t.State.Finished() && now >= t.removeAt():
		m, err = t.Remove()
	case t.State.Finished() && now >= t.removeOutputsAt():
		m = t.removeOutputs()
	default:
		return Move{}, false
	}
	return m, err == nil
}

func (t *Task) settleRunning(now Time) (Move, bool) {
	var m Move
	var err error
	switch {
	case now > t.runningUntil():
		m, err = t.expire()
	case t.isTimedOut(now):
		m, err = t.TimeOut()
	case t.Current().Claim != "" && now >= t.LeaseUntil && t.Unstarted:
		m, err = t.unclaim("its worker " + t.Current().Worker + " is gone, and had not started it")
	case t.Current().Claim != "" && now >= t.LeaseUntil:
		m, err = t.lose(Running)
	default:
		return Move{}, false
	}
	return m, err == nil
}

// isTimedOut reports whether the server times out the current round of a running task.
func (t *Task) isTimedOut(now Time) bool {
	switch {
	case t.Current().Claim == "":
		return now >= t.deadline().Add(unclaimedMargin)
	case t.leaseHolds(now):
		return now > t.deadline().Add(TimeoutMargin)
	}
	return now > t.deadline()
}

// unclaimedMargin is the time between the deadline of a round without a claim and the moment when the server times out
// the round. A worker of the original TDF ends its program at the deadline, and dies if the server has already ended
// the round.
const unclaimedMargin = Seconds(1)

// TimeoutMargin is the time between the deadline and the moment when the server times out a round whose lease still
// holds. In this time, the worker ends the program and reports its output.
const TimeoutMargin = Seconds(10)

// ServerAbsence is the time without a heartbeat after which a server counts as absent. It is also the shortest leap of
// Redis's clock that a server notices. Because both times are equal, all servers count as absent after a leap forward,
// until their next heartbeat.
const ServerAbsence = Seconds(5)

// leaseHolds reports whether the current round has a claim whose lease has not run out.
func (t *Task) leaseHolds(now Time) bool { return t.Current().Claim != "" && now < t.LeaseUntil }

// settleResult returns the Move that settles an executed task: the task expires if it was executed after its
// end_before, and otherwise fails or succeeds. It returns false if the task is in another state, or if its result is
// not whole. Unlike other decisions, this one depends on no clock and on no grace period, so the one who has stored the
// result may make it at once.
func (t *Task) settleResult() (Move, bool) {
	var m Move
	var err error
	r := t.Current()
	switch {
	case t.State != Executed || !r.Committed:
		return Move{}, false
	case r.Entered[Executed] > t.EndBefore:
		m, err = t.expire()
	case r.HasFailed(t.FailOn):
		m, err = t.fail()
	default:
		m, err = t.move(VerbSucceed, Succeeded)
	}
	return m, err == nil
}

// NextDue returns the time at which the server must check the task again if Settle returns false at the time now. It
// returns Never if only a manager, a worker or a user can change the task.
func (t *Task) NextDue(now Time) Time {
	switch t.State {
	case Open:
		if t.Waits() {
			return t.endOfWait()
		}
		return t.OpenUntil()
	case Running:
		if t.Current().Claim != "" {
			return min(t.deadline().Add(TimeoutMargin), t.runningUntil(), t.LeaseUntil)
		}
		// a worker of the original TDF has no claim and no lease
		return min(t.deadline().Add(unclaimedMargin), t.EndBefore, now.Add(recheckInterval))
	case Executed:
		// a worker of the original TDF may still be writing the result; if the result stays incomplete, the audit
		// repairs the task
		return now.Add(1)
	}
	if t.State.Finished() {
		next := t.nextRemoval()
		if next < Never && t.Dependents > 0 {
			next = max(next, now.Add(neededPause))
		}
		return next
	}
	return Never
}

// recheckInterval is the longest time between two checks of a running task without a lease.
const recheckInterval = Seconds(60)

// runningUntil returns the time after which a running task expires. It is the task's end_before, unless the worker has
// reported that the program has ended: only then can the deadline be later than end_before. Until this deadline, the
// worker ends the processes that the program left behind, and collects the output.
func (t *Task) runningUntil() Time {
	if t.Current().Claim != "" && t.Deadline < Never {
		return max(t.EndBefore, t.Deadline)
	}
	return t.EndBefore
}

// deadline returns the time at which the current round times out.
func (t *Task) deadline() Time {
	r := t.Current()
	switch {
	case r.Claim != "" && t.Deadline > 0:
		return t.Deadline
	case r.Entered[Running] == 0:
		// a worker of the original TDF is still writing its claim; if the claim stays incomplete, the audit repairs the
		// task
		return Never
	}
	return max(r.Entered[Running], r.Started).Add(t.Timeout)
}

// HasFailed reports whether an executed round counts as failed under the rule f.
func (r *Round) HasFailed(f FailOn) bool {
	if f == FailOnStderr || r.Exit == "" || strings.HasPrefix(r.Exit, exitSignal) {
		return r.HasError || strings.HasPrefix(r.Exit, exitSignal)
	}
	if f == FailOnUnknown {
		return r.Exit != "0" && r.HasError
	}
	return r.Exit != "0" || f == FailOnAny && r.HasError
}

const exitSignal = "signal:"

// endOrReopen returns a Move that reopens the task if its counter is below the limit. If the counter has reached the
// limit, the Move changes the task's state to end. The caller passes the value of the counter before the Move raises
// it.
func (t *Task) endOrReopen(v Verb, count, limit int, end State) (Move, error) {
	if count < limit && t.Round < MaxRound && !t.isLastAttempt() {
		return t.move(v, Open)
	}
	return t.move(v, end)
}

// isLastAttempt reports whether max_attempts allows no further round if the current one fails, times out or is lost.
func (t *Task) isLastAttempt() bool {
	return t.MaxAttempts > 0 && t.Fails+t.Timeouts+t.Losses+1 >= t.MaxAttempts
}

func (t *Task) fail() (Move, error) {
	tolerated, what := t.MaxFails, "failed"
	if t.Current().Permanent {
		tolerated, what = 0, "failed for good"
	}
	m, err := t.endOrReopen(VerbFail, t.Fails, tolerated, Failed)
	m.stamp(roundFailure, Now)
	m.Note = withReopened(m, what)
	m.backOff(t)
	return m, err
}

// TimeOut returns a Move that ends the current round because it ran for longer than the task's timeout. Use
// [Move.WithResult] to add the output of the program.
func (t *Task) TimeOut() (Move, error) {
	m, err := t.endOrReopen(VerbTimeOut, t.Timeouts, t.MaxTimeouts, TimedOut)
	m.stamp(roundTimeout, Now)
	m.Note = withReopened(m, "timed out")
	m.backOff(t)
	return m, err
}

// lose ends the current round because its lease ran out. In Redis, the task has the state found. This state is running,
// except if the audit repairs an inconsistent task.
func (t *Task) lose(found State) (Move, error) {
	running := *t
	running.State = Running
	m, err := running.endOrReopen(VerbLose, t.Losses, t.MaxLosses, Failed)
	m.From = found
	m.stamp(roundLost, Now)
	m.Note = withReopened(m, "lost with its worker "+t.Current().Worker)
	if m.To == Failed {
		why := fmt.Sprintf("%d times, and only %d are tolerated (max_losses)", t.Losses+1, t.MaxLosses)
		switch {
		case t.Losses >= t.MaxLosses:
		case t.isLastAttempt():
			why = fmt.Sprintf("in the last of %d attempts (max_attempts)", t.MaxAttempts)
		default:
			why = fmt.Sprintf("in round %d, the last one that a task can have", t.Round)
		}
		m.setRound(RoundError, fmt.Sprintf("lost with its worker %s; the workers: %s", why,
			strings.Join(t.lostWorkers(), ", ")))
	}
	return m, err
}

func (t *Task) lostWorkers() []string {
	var names []string
	for i, r := range t.Rounds.All() {
		if (r.LostAt > 0 || i == t.Round) && r.Worker != "" {
			names = append(names, r.Worker)
		}
	}
	return names
}

func withReopened(m Move, ending string) string {
	if m.To == Open {
		return ending + ", reopened"
	}
	return ending
}

func (t *Task) expire() (Move, error) { return t.move(VerbExpire, Expired) }

// Expire returns a Move that expires the task. A worker that claims tasks uses it for open tasks for which the time
// of [Properties.OpenUntil] has passed.
func (t *Task) Expire() (Move, error) { return t.expire() }

// reject moves an invalid open task to the state failed.
func (t *Task) reject(reason string) (Move, error) {
	m, err := t.move(VerbReject, Failed)
	m.setRound(RoundError, reason)
	m.Note = "failed: " + oneLine(reason)
	return m, err
}

// Release returns a Move with which a worker returns a running task: the task is reopened, and the round does not count
// as a failure. The error is [ErrLastRound] if the task can have no further round.
func (t *Task) Release(reason string) (Move, error) {
	if t.Round >= MaxRound {
		return Move{}, ErrLastRound
	}
	m, err := t.move(VerbRelease, Open)
	m.Note = "released: " + oneLine(reason)
	return m, err
}

// Unclaim returns a Move with which a worker gives a prefetched task back before its program has started: the task is
// open again, in the same round and at the same position of its queue, and nothing is counted (docs/lifecycle.md,
// "Prefetched tasks").
func (t *Task) Unclaim(why string) (Move, error) {
	m, err := t.unclaim(why)
	m.Clear = append(m.Clear, RoundField(m.Round, RoundPrefetched))
	return m, err
}

// unclaim does the work of Unclaim for the task of a worker that is gone. The round keeps its property prefetched, so
// that no worker prefetches the task again: if the program has ended the worker before the worker could write that it
// has started, the next such loss counts.
func (t *Task) unclaim(why string) (Move, error) {
	m, err := t.move(VerbUnclaim, Open)
	m.Note = "unclaimed: " + oneLine(why)
	since := t.ClaimableFrom()
	m.Score = Moment{Min: since, Max: since}
	m.Claim = t.Current().Claim
	for _, name := range []string{string(Running), RoundWorker, RoundClaim} {
		m.Clear = append(m.Clear, RoundField(m.Round, name))
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
func (t *Task) ReleaseUnfit(reason string, putOff Time) (Move, bool) {
	if t.UnfitHosts >= maxUnfitHosts && putOff == 0 {
		return Move{}, false
	}
	m, err := t.Release(reason)
	if putOff == 0 {
		m.set(fieldUnfit, fmt.Sprint(t.UnfitHosts+1))
		m.delay(t, leastDelay*Seconds(int(1)<<t.UnfitHosts)) // the host may be repaired, or another worker may start
	} else {
		m.refuse(t, NotOn{t.Current().Worker, putOff})
	}
	return m, err == nil
}

// Archive returns a Move that archives a finished task after its manager has handled it.
//
// The round's claim is a fence of the Move. After a failover, Redis may have lost the end of the round, and another
// claim may end the same round with another result. With the fence, a manager archives only the result that it has
// handled (docs/guarantees.md, "Transitions").
func (t *Task) Archive() (Move, error) {
	m, err := t.move(VerbArchive, Archived)
	m.Claim = cmp.Or(t.Current().Claim, NoClaim)
	return m, err
}

// Cancel returns a Move that ends an open or running task. The task expires with the outcome [Cancelled].
func (t *Task) Cancel() (Move, error) {
	m, err := t.move(VerbCancel, Expired)
	m.Note = "cancelled"
	return m, err
}

// Requeue returns a Move with which an operator takes a running task from its worker. The task is reopened, and the
// round does not count as a failure. If the task must run elsewhere, that worker cannot claim the task again.
func (t *Task) Requeue(elsewhere bool) (Move, error) {
	m, err := t.Release("requeued")
	not := NotOn{t.Current().Worker, Never}
	if worker := not.Worker; err == nil && elsewhere && worker != "" && !slices.Contains(t.NotOn, not) {
		m.refuse(t, not)
		m.Note += ", no longer for " + worker
	}
	return m, err
}

// Remove returns a Move that deletes a finished task and its outputs. A user makes this Move, or the server when the
// task's retention period is over.
func (t *Task) Remove() (Move, error) {
	if err := t.needed(); err != nil && t.State.Finished() {
		return Move{}, err
	}
	m, err := t.move(VerbRemove, None)
	m.Unique = t.Unique
	return m, err
}

// Replace returns a Move that removes an open task, because its opener has replaced it by another task, or has no more
// use for it. The error is a *[StateError] if the task is not open, or another error if other tasks need it.
func (t *Task) Replace() (Move, error) {
	if err := t.needed(); err != nil && t.State == Open {
		return Move{}, err
	}
	m, err := t.move(VerbReplace, None)
	m.Unique = t.Unique
	return m, err
}

// ErrLastRound means that the task is in round [MaxRound] and can have no further round.
var ErrLastRound = NewError(CodeConflict, fmt.Sprintf("it is in round %d, the last one that a task can have", MaxRound))

// Reopen returns a Move that reopens a finished task for a user. Of the task's counters, the Move changes only
// reopens. The error is [ErrLastRound] if the task can have no further round.
func (t *Task) Reopen() (Move, error) {
	m, err := t.reopen()
	m.startOver(t, &t.Properties)
	return m, err
}

func (t *Task) reopen() (Move, error) {
	if t.Round >= MaxRound {
		return Move{}, ErrLastRound
	}
	m, err := t.move(VerbReopen, Open)
	m.Unique = t.Unique
	m.Clear = append(m.Clear, fieldOutcome, fieldNotOn)
	if t.Ready > 0 {
		// ready still has a value if a round that was put off ended before a worker claimed it
		m.Clear = append(m.Clear, fieldReady)
	}
	m.Note = "reopened by hand"
	return m, err
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
