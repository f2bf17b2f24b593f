package manager

// sayNotYet warns once if tasks wait because of ErrNotYet, although no other task can finish: a task for which they
// wait may have failed.
func (r *run) sayNotYet() {
	if r.summary.Counts.Unfinished() > 0 || r.summary.Archived > 0 {
		r.saidIt = false
		return
	}
	waiting, first := 0, int64(0)
	for id, again := range r.backoff {
		switch {
		case again.notYet != nil:
			if waiting++; first == 0 || id < first {
				first = id
			}
		case !again.givenUp: // its callback is called again
			return
		}
	}
	if waiting == 0 || r.summary.Running > 0 || r.saidIt {
		return
	}
	r.saidIt = true
	r.log.Warn("callbacks return ErrNotYet, but all tasks have finished; the tasks stay until something else changes",
		"tasks", waiting, "task", first, "error", r.backoff[first].notYet)
}
