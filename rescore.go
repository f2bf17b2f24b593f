package tdf

// An open task's score is the moment from which it may be claimed: its start_after, or when it
// became open if that was later. A score beyond that is left from a clock that was set back since.
// So is the end of a running task's lease if it is further ahead than any lease lasts.

// scoreSlack is how far a score may lie beyond that moment: a claim puts an invalid task off for
// 5 s, and components of the original TDF go by clocks of their own.
const scoreSlack = Seconds(10)

// Rescore gives an open task the score that it should have, at the time now, if the score that it
// has lies too far in the future: Redis's clock was set back (docs/guarantees.md, "Clock leaps").
// False: the score is right. A task that became open in that future counts as opened now. Of the
// tasks of one call, the i-th is scored i times a microsecond later, so that they keep their order.
func (t *Task) Rescore(score, now Time, i int) (Move, bool) {
	entered := t.Current().Entered[Open]
	if t.State != Open || score <= max(t.StartAfter, min(entered, now).Add(t.putOff())).Add(scoreSlack) || score <= now.Add(scoreSlack) {
		return Move{}, false
	}
	m, err := t.move(VerbRescore, Open)
	later := Seconds(i) * 1e-6
	opened := entered
	if opened > now {
		opened = now.Add(later)
		m.stamp(string(Open), exactly(opened))
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
	m.Score, m.NextDue = exactly(ready), exactly(t.EndBefore)
	m.Note = "open: a new place in the queue, since Redis's clock was set back"
	return m, err == nil
}

// RescoreRunning gives a running task the moments that it should have, at the time now, if these lie too far in the
// future: Redis's clock was set back (docs/guarantees.md, "Clock leaps"). Score is the task's score in running. Longest is
// the longest lease that its worker may have; 0: unknown, and then leases stay. False: the moments are right.
//
// A worker that lives renews its lease itself, so only tasks of dead workers need this.
func (t *Task) RescoreRunning(score, now Time, longest Seconds) (Move, bool) {
	if t.State != Running {
		return Move{}, false
	}
	if t.Current().Claim == "" {
		return t.restart(score, now)
	}
	lease := now.Add(longest)
	if longest <= 0 || t.LeaseUntil == Never || t.LeaseUntil <= lease.Add(scoreSlack) {
		return Move{}, false
	}
	m, err := t.move(VerbRescore, Running)
	at := *t
	at.LeaseUntil = lease
	m.set(fieldLeaseUntil, lease.String())
	if t.Deadline > 0 && t.Deadline < t.EndBefore {
		at.Deadline = max(lease, t.Deadline.Add(-t.setBack(now, lease)))
		m.set(fieldDeadline, at.Deadline.String())
	}
	m.Score, m.NextDue = exactly(score), exactly(at.NextDue(now))
	m.Note = "running: its lease counts from now, since Redis's clock was set back"
	return m, err == nil
}

// setBack returns by how much the clock was set back at least, where a lease should end at the latest at the time given.
func (t *Task) setBack(now, lease Time) Seconds {
	r := t.Current()
	return max(t.LeaseUntil.Sub(lease), max(r.Entered[Running], r.Started).Sub(now))
}

// restart has a round without a claim begin now if it began in the future: its deadline counts from there.
func (t *Task) restart(score, now Time) (Move, bool) {
	r := t.Current()
	if r.Entered[Running] <= now.Add(scoreSlack) {
		return Move{}, false
	}
	m, err := t.move(VerbRescore, Running)
	m.stamp(string(Running), exactly(now))
	m.Score, m.NextDue = exactly(score), exactly(min(now.Add(t.Timeout), t.EndBefore, now.Add(lookAgain)))
	m.Note = "running: its timeout counts from now, since Redis's clock was set back"
	return m, err == nil
}

// exactly returns the moment t; for Never, never.
func exactly(t Time) Moment { return Moment{Min: t, Max: t} }
