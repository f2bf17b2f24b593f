package tdf

// keep returns how long Redis keeps the task after it has entered its present state. It is Forever if the task is not
// finished.
func (t *Task) keep() Seconds {
	switch {
	case t.State == Archived:
		return t.KeepArchived
	case t.State.Settled():
		return t.KeepFinished
	}
	return Forever
}

// removeAt returns the time at which the server removes the finished task, or Never (docs/lifecycle.md, "Retention").
func (t *Task) removeAt() Time {
	entered := t.Current().Entered[t.State]
	if entered == 0 {
		return Never // the time is missing: a component of the original TDF moved the task
	}
	return entered.Add(t.keep())
}

// leastSeconds is the smallest number of seconds above 0 that TDF can write to Redis. A smaller number may become 0.
const leastSeconds = Seconds(1e-6)

func (d *Properties) checkRetention() error {
	switch {
	case !validSeconds(float64(d.KeepFinished)) || d.KeepFinished < leastSeconds:
		return invalidProperty(fieldKeepFinished, "%v is neither a number of seconds above 0 nor inf", float64(d.KeepFinished))
	case !validSeconds(float64(d.KeepArchived)):
		return invalidProperty(fieldKeepArchived, "%v is neither a number of seconds from 0 up nor inf", float64(d.KeepArchived))
	}
	return nil
}
