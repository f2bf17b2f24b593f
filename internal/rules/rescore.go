package rules

import (
	"github.com/tdf-framework/tdf/internal/task"
)

// An open task's score is the time from which a worker may claim it. It is start_after or the time when the task became
// open, whichever is later. If the score is higher, Redis's clock has been set back after the score was written. If a
// running task's lease ends later than its length allows, Redis's clock has been set back, too.

// scoreSlack is the number of seconds by which a score may be too high without a correction. Small differences are
// normal: a claim postpones an invalid task by 5 s, and components of the original TDF use their own clocks.
const scoreSlack = task.Seconds(10)

// Rescore returns a Move that corrects the score of an open task after Redis's clock was set back (docs/guarantees.md,
// "Clock leaps"). It returns false if the score needs no correction.
//
// If the time of opening is in the future, Rescore replaces it by now. If a caller corrects several tasks together, it
// numbers them, and passes the task's number i. Rescore adds i microseconds to the score, so that the tasks keep their
// order.
func Rescore(t *task.Task, score, now task.Time, i int) (Move, bool) {
	entered := t.Current().Entered[task.Open]
	if t.State != task.Open || score <= max(t.StartAfter, min(entered, now).Add(putOff(t))).Add(scoreSlack) ||
		score <= now.Add(scoreSlack) {
		return Move{}, false
	}
	m, err := move(t, VerbRescore, task.Open)
	later := task.Seconds(i) * 1e-6
	opened := entered
	if opened > now {
		opened = now.Add(later)
		m.stamp(string(task.Open), momentAt(opened))
	}
	again := opened.Add(putOff(t))
	ready := max(t.StartAfter, again)
	switch {
	case t.StartAfter > again && i > 0:
		ready = ready.Add(later)
		m.set(task.FieldReady, ready.String())
	case again > max(opened, t.StartAfter):
		m.set(task.FieldReady, ready.String())
	case t.Ready > 0:
		m.Clear = append(m.Clear, task.FieldReady)
	}
	m.Score, m.NextDue = momentAt(ready), momentAt(NextDue(t, now))
	m.Note = "open: a new place in the queue, because Redis's clock was set back"
	return m, err == nil
}

// RescoreRunning returns a Move that corrects the lease and the deadline of a running task after Redis's clock was set
// back (docs/guarantees.md, "Clock leaps"). It returns false if neither of them needs a correction.
//
// The caller passes the task's score in the list running. If the length of the lease is unknown, nothing is corrected.
//
// A live worker renews its leases itself, so only tasks of dead workers need this correction.
func RescoreRunning(t *task.Task, score, now task.Time) (Move, bool) {
	if t.State != task.Running {
		return Move{}, false
	}
	if t.Current().Claim == "" {
		return rescoreUnclaimed(t, score, now)
	}
	lease := now.Add(t.Lease)
	if t.Lease <= 0 || t.LeaseUntil == task.Never || t.LeaseUntil <= lease.Add(scoreSlack) {
		return Move{}, false
	}
	m, err := move(t, VerbRescore, task.Running)
	at := *t
	at.LeaseUntil = lease
	m.set(task.FieldLeaseUntil, lease.String())
	if t.Deadline > 0 && t.Deadline < t.EndBefore {
		at.Deadline = min(max(lease, t.Deadline.Add(-clockSetBackBy(t, now, lease))), t.EndBefore)
		m.set(task.FieldDeadline, at.Deadline.String())
	}
	m.Score, m.NextDue = momentAt(score), momentAt(NextDue(&at, now))
	m.Note = "running: its lease counts from now, because Redis's clock was set back"
	return m, err == nil
}

// clockSetBackBy returns the shortest time by which the clock can have been set back, according to the times of the
// task. By the present clock, the task's lease can end at the time lease at the latest.
func clockSetBackBy(t *task.Task, now, lease task.Time) task.Seconds {
	r := t.Current()
	return max(t.LeaseUntil.Sub(lease), max(r.Entered[task.Running], r.Started).Sub(now))
}

// rescoreUnclaimed returns a Move that corrects a round without a claim, if the round begins in the future. After the
// Move, the round begins now, and its timeout counts from now.
func rescoreUnclaimed(t *task.Task, score, now task.Time) (Move, bool) {
	r := t.Current()
	if r.Entered[task.Running] <= now.Add(scoreSlack) {
		return Move{}, false
	}
	m, err := move(t, VerbRescore, task.Running)
	m.stamp(string(task.Running), momentAt(now))
	m.Score, m.NextDue = momentAt(score), momentAt(min(now.Add(t.Timeout), t.EndBefore, now.Add(recheckInterval)))
	m.Note = "running: its timeout counts from now, because Redis's clock was set back"
	return m, err == nil
}

// momentAt returns the Moment that is always t, whenever Redis carries out the Move.
func momentAt(t task.Time) Moment { return Moment{Min: t, Max: t} }
