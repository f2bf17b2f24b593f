package tdf

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Settle says what the server does with a task at the time now (docs/lifecycle.md, "What
// the server decides"); invalid is what [ParseTask] found wrong with it. False: nothing yet;
// then [Task.NextDue] says when to ask again.
func (t *Task) Settle(now Time, invalid error) (Move, bool) {
	var m Move
	var err error
	switch {
	case t.State == Open && invalid != nil:
		m, err = t.reject(invalid.Error())
	case t.State == Open && now >= t.EndBefore:
		m, err = t.expire()
	case t.State == Running:
		return t.settleRunning(now)
	case t.State == Executed && t.Current().Committed:
		return t.judge()
	default:
		return Move{}, false
	}
	return m, err == nil
}

func (t *Task) settleRunning(now Time) (Move, bool) {
	var m Move
	var err error
	switch {
	case now > t.EndBefore:
		m, err = t.expire()
	case now > t.deadline() && (!t.alive(now) || now > t.deadline().Add(TimeoutMargin)):
		m, err = t.TimeOut()
	case t.Current().Claim != "" && now >= t.LeaseUntil:
		m, err = t.lose(Running)
	default:
		return Move{}, false
	}
	return m, err == nil
}

// TimeoutMargin is what the server leaves a worker whose lease lives to end a program by itself
// whose time is over, and to report what it had printed.
const TimeoutMargin = Seconds(10)

// ServerAbsence is how long a server may be silent before it is taken for absent. It is as long as the shortest
// leap of Redis's clock that a server notices: after such a leap no heartbeat is as young as that.
const ServerAbsence = Seconds(5)

// alive: the worker has sent a heartbeat lately.
func (t *Task) alive(now Time) bool { return t.Current().Claim != "" && now < t.LeaseUntil }

// judge decides over an executed round: on time or not, failed or not.
func (t *Task) judge() (Move, bool) {
	var m Move
	var err error
	r := t.Current()
	switch {
	case r.Entered[Executed] > t.EndBefore:
		m, err = t.expire()
	case r.HasFailed(t.FailOn):
		m, err = t.fail()
	default:
		m, err = t.move(VerbSucceed, Succeeded)
	}
	return m, err == nil
}

// NextDue returns the moment at which the server must look at a task again that Settle leaves
// where it is; Never if nothing can happen to it by itself.
func (t *Task) NextDue(now Time) Time {
	switch t.State {
	case Open:
		return t.EndBefore
	case Running:
		if t.Current().Claim != "" {
			return min(t.deadline().Add(TimeoutMargin), t.EndBefore, t.LeaseUntil)
		}
		return min(t.deadline(), t.EndBefore, now.Add(lookAgain)) // no lease: somebody else's worker
	case Executed:
		return now.Add(1) // its commit is still being written, or torn: the audit's
	}
	return Never
}

// lookAgain is how often the server looks at a running task that no moment of its own makes due.
const lookAgain = Seconds(60)

// deadline is when the current round has run for too long.
func (t *Task) deadline() Time {
	r := t.Current()
	switch {
	case r.Claim != "" && t.Deadline > 0:
		return t.Deadline
	case r.Entered[Running] == 0:
		return Never // a worker of the original TDF is still writing: the audit's
	}
	return max(r.Entered[Running], r.Started).Add(t.Timeout)
}

// HasFailed reports whether a committed round counts as failed under the rule f.
func (r *Round) HasFailed(f FailOn) bool {
	if f == FailOnStderr || r.Exit == "" || strings.HasPrefix(r.Exit, exitSignal) {
		return r.Failed || strings.HasPrefix(r.Exit, exitSignal)
	}
	return r.Exit != "0" || f == FailOnAny && r.Failed
}

const exitSignal = "signal:"

// endOrReopen follows the row of the table that re-opens the task while the count of such
// rounds is forgiven, and the one that ends it after that.
func (t *Task) endOrReopen(v Verb, count, forgiven int, end State) (Move, error) {
	if count < forgiven && t.Round < MaxRound {
		return t.move(v, Open)
	}
	return t.move(v, end)
}

func (t *Task) fail() (Move, error) {
	tolerated, what := t.MaxFails, "failed"
	if t.Current().Permanent {
		tolerated, what = 0, "failed for good"
	}
	m, err := t.endOrReopen(VerbFail, t.Fails, tolerated, Failed)
	m.stamp(roundFailure, Now)
	m.Note = note(m, what)
	return m, err
}

// TimeOut ends the current round because it ran for longer than the task's timeout. What
// the program had printed by then may be added with [Move.WithResult].
func (t *Task) TimeOut() (Move, error) {
	m, err := t.endOrReopen(VerbTimeOut, t.Timeouts, t.MaxTimeouts, TimedOut)
	m.stamp(roundTimeout, Now)
	m.Note = note(m, "timed out")
	return m, err
}

// lose ends the current round because its worker is gone. The state that the task is found
// in is running, unless the audit comes upon a round that nobody will ever finish.
func (t *Task) lose(found State) (Move, error) {
	running := *t
	running.State = Running
	m, err := running.endOrReopen(VerbLose, t.Losses, t.MaxLosses, Failed)
	m.From = found
	m.stamp(roundLost, Now)
	m.Note = note(m, "lost with its worker "+t.Current().Worker)
	if m.To == Failed {
		why := fmt.Sprintf("%d times, and only %d are forgiven (max_losses)", t.Losses+1, t.MaxLosses)
		if t.Losses < t.MaxLosses {
			why = fmt.Sprintf("in round %d, and no task can have more", t.Round)
		}
		m.setRound(RoundError, fmt.Sprintf("lost with its worker %s; the workers: %s", why, strings.Join(t.lostWorkers(), ", ")))
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

func note(m Move, what string) string {
	if m.To == Open {
		return what + ", open again"
	}
	return what
}

func (t *Task) expire() (Move, error) { return t.move(VerbExpire, Expired) }

// Expire takes a task out of the way that a claim met after its end_before.
func (t *Task) Expire() (Move, error) { return t.expire() }

// reject fails an open task that makes no sense, or that can never run.
func (t *Task) reject(reason string) (Move, error) {
	m, err := t.move(VerbReject, Failed)
	m.setRound(RoundError, reason)
	m.Note = "failed: " + oneLine(reason)
	return m, err
}

// Release gives a running task back: the round is over and counts as none of the failures. The error
// may be [ErrLastRound]: then there is no round to give it back for, and this one has to end otherwise.
func (t *Task) Release(reason string) (Move, error) {
	if t.Round >= MaxRound {
		return Move{}, ErrLastRound
	}
	m, err := t.move(VerbRelease, Open)
	m.Note = "given back: " + oneLine(reason)
	return m, err
}

// maxUnfitHosts is how often a task is given back because of the hosts of its workers.
const maxUnfitHosts = 3

// ReleaseUnfit gives a running task back whose round could not even start because of the
// worker's host. False: it was given back for that too often, or this is the last round that it can
// have; the round has failed.
func (t *Task) ReleaseUnfit(reason string) (Move, bool) {
	if t.UnfitHosts >= maxUnfitHosts {
		return Move{}, false
	}
	m, err := t.Release(reason)
	m.set(fieldUnfit, fmt.Sprint(t.UnfitHosts+1))
	return m, err == nil
}

// Archive ends a judged task's life after its manager has seen it.
//
// The move names the claim of the round besides the round: a failover of Redis can roll a task back, and a
// later claim can then end the same round with another result (docs/guarantees.md).
func (t *Task) Archive() (Move, error) {
	m, err := t.move(VerbArchive, Archived)
	m.Claim = cmp.Or(t.Current().Claim, NoClaim)
	return m, err
}

// Cancel gives up a task that is not finished yet.
func (t *Task) Cancel() (Move, error) {
	m, err := t.move(VerbCancel, Expired)
	m.Note = "cancelled"
	return m, err
}

// Requeue takes a running task from its worker by hand; the round is over and counts as none of
// the failures. Elsewhere: this worker does not get it again.
func (t *Task) Requeue(elsewhere bool) (Move, error) {
	m, err := t.Release("by hand")
	if worker := t.Current().Worker; err == nil && elsewhere && worker != "" && !slices.Contains(t.NotOn, worker) {
		kept := t.NotOn[max(0, len(t.NotOn)+1-maxNotOn):]
		m.set(fieldNotOn, strings.Join(append(slices.Clone(kept), worker), "\n"))
		m.Note += ", not on " + worker + " any more"
	}
	return m, err
}

// maxNotOn is how many workers a task is kept from: the last ones that it was taken from.
const maxNotOn = 16

// Remove takes a finished task out of the world, with all that it printed.
func (t *Task) Remove() (Move, error) { return t.move(VerbRemove, None) }

// ErrLastRound says that a task has had as many rounds as it can have.
var ErrLastRound = fmt.Errorf("it is in round %d, and no task can have more", MaxRound)

// Reopen opens a finished task again by hand; its counters stay as they are. The error may be
// [ErrLastRound].
func (t *Task) Reopen() (Move, error) {
	if t.Round >= MaxRound {
		return Move{}, ErrLastRound
	}
	m, err := t.move(VerbReopen, Open)
	m.Clear = append(m.Clear, fieldOutcome, fieldNotOn)
	if t.Ready > 0 {
		m.Clear = append(m.Clear, fieldReady) // of a round that was put off, and ended before it was claimed
	}
	m.Note = "open again by hand"
	return m, err
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
