package task

// An open task's score is the time from which a worker may claim it. It is start_after or the time when the task became
// open, whichever is later. If the score is higher, Redis's clock has been set back after the score was written. If a
// running task's lease ends later than its length allows, Redis's clock has been set back, too.

// scoreSlack is the number of seconds by which a score may be too high without a correction. Small differences are
// normal: a claim postpones an invalid task by 5 s, and components of the original TDF use their own clocks.
const scoreSlack = Seconds(10)

// Rescore returns a Move that corrects the score of an open task after Redis's clock was set back (docs/guarantees.md,
// "Clock leaps"). It returns false if the score needs no correction.
//
// If the time of opening is in the future, Rescore replaces it by now. If a caller corrects several tasks together, it
// numbers them, and passes the task's number i. Rescore adds i microseconds to the score, so that the tasks keep their
// order.
func (t *Task) Rescore(score, now Time, i int) (Move, bool) {
	entered := t.Current().Entered[Open]
	if t.State != Open || score <= max(t.StartAfter, min(entered, now).Add(t.putOff())).Add(scoreSlack) ||
		score <= now.Add(scoreSlack) {
		return Move{}, false
	}
	m, err := t.move(VerbRescore, Open)
	later := Seconds(i) * 1e-6
	opened := entered
	if opened > now {
		opened = now.Add(later)
		m.stamp(string(Open), momentAt(opened))
	}
	again := opened.Add(t.putOff())
	ready := max(t.StartAfter, again)
	switch {
	case t.StartAfter > again && i > 0:
		ready = ready.Add(later)
		m.set(fieldReady, ready.String())
	case again > max(opened, t.StartAfter):
		m.set(fieldReady, ready.String())
	case t.Ready > 0:
		m.Clear = append(m.Clear, fieldReady)
	}
	m.Score, m.NextDue = momentAt(ready), momentAt(t.NextDue(now))
	m.Note = "open: a new place in the queue, because Redis's clock was set back"
	return m, err == nil
}

// RescoreRunning returns a Move that corrects the lease and the deadline of a running task after Redis's clock was set
// back (docs/guarantees.md, "Clock leaps"). It returns false if neither of them needs a correction.
//
// The caller passes the task's score in the list running. If the length of the lease is unknown, nothing is corrected.
//
// A live worker renews its leases itself, so only tasks of dead workers need this correction.
func (t *Task) RescoreRunning(score, now Time) (Move, bool) {
	if t.State != Running {
		return Move{}, false
	}
	if t.Current().Claim == "" {
		return t.rescoreUnclaimed(score, now)
	}
	lease := now.Add(t.Lease)
	if t.Lease <= 0 || t.LeaseUntil == Never || t.LeaseUntil <= lease.Add(scoreSlack) {
		return Move{}, false
	}
	m, err := t.move(VerbRescore, Running)
	at := *t
	at.LeaseUntil = lease
	m.set(fieldLeaseUntil, lease.String())
	if t.Deadline > 0 && t.Deadline < t.EndBefore {
		at.Deadline = min(max(lease, t.Deadline.Add(-t.clockSetBackBy(now, lease))), t.EndBefore)
		m.set(fieldDeadline, at.Deadline.String())
	}
	m.Score, m.NextDue = momentAt(score), momentAt(at.NextDue(now))
	m.Note = "running: its lease counts from now, because Redis's clock was set back"
	return m, err == nil
}

// clockSetBackBy returns the shortest time by which the clock can have been set back, according to the times of the
// task. By the present clock, the task's lease can end at the time lease at the latest.
func (t *Task) clockSetBackBy(now, lease Time) Seconds {
	r := t.Current()
	return max(t.LeaseUntil.Sub(lease), max(r.Entered[Running], r.Started).Sub(now))
}

// rescoreUnclaimed returns a Move that corrects a round without a claim, if the round begins in the future. After the
// Move, the round begins now, and its timeout counts from now.
func (t *Task) rescoreUnclaimed(score, now Time) (Move, bool) {
	r := t.Current()
	if r.Entered[Running] <= now.Add(scoreSlack) {
		return Move{}, false
	}
	m, err := t.move(VerbRescore, Running)
	m.stamp(string(Running), momentAt(now))
	m.Score, m.NextDue = momentAt(score), momentAt(min(now.Add(t.Timeout), t.EndBefore, now.Add(recheckInterval)))
	m.Note = "running: its timeout counts from now, because Redis's clock was set back"
	return m, err == nil
}

// momentAt returns the Moment that is always t, whenever Redis carries out the Move.
func momentAt(t Time) Moment { return Moment{Min: t, Max: t} }
