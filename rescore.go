package tdf

// An open task's score is the moment from which it may be claimed: its start_after, or when it
// became open if that was later. A score beyond that is left from a clock that was set back since.

// scoreSlack is how far a score may lie beyond that moment: a claim puts an invalid task off for
// 5 s, and components of the original TDF go by clocks of their own.
const scoreSlack = Seconds(10)

// Rescore gives an open task the score that it should have, at the time now, if the score that it
// has lies too far in the future: Redis's clock was set back (docs/guarantees.md, "Clock leaps").
// False: the score is right. A task that became open in that future counts as opened now. Of the
// tasks of one call, the i-th is scored i times a microsecond later, so that they keep their order.
func (t *Task) Rescore(score, now Time, i int) (Move, bool) {
	entered := t.Current().Entered[Open]
	if t.State != Open || score <= max(t.StartAfter, min(entered, now)).Add(scoreSlack) || score <= now.Add(scoreSlack) {
		return Move{}, false
	}
	m, err := t.move(VerbRescore, Open)
	later := Seconds(i) * 1e-6
	opened := entered
	if opened > now {
		opened = now.Add(later)
		m.stamp(string(Open), exactly(opened))
	}
	ready := max(t.StartAfter, opened)
	if t.StartAfter > opened && i > 0 {
		ready = ready.Add(later)
		m.set(fieldReady, ready.String())
	} else if t.Ready > 0 {
		m.Clear = append(m.Clear, fieldReady)
	}
	m.Score, m.Look = exactly(ready), exactly(t.EndBefore)
	m.Note = "open: a new place in the queue, since Redis's clock was set back"
	return m, err == nil
}

// exactly returns the moment t; for Never, never.
func exactly(t Time) Moment { return Moment{Min: t, Max: t} }
