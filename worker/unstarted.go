package worker

import (
	"sync"
	"time"
)

// unstarted remembers the last program that could not be started, until one of its rounds ends in another way. Tasks in
// stock may be of the same program, so the worker keeps none meanwhile.
type unstarted struct {
	mu      sync.Mutex
	program string // "" if there is none
	since   time.Time
}

// unstartedFor is how long a program that could not be started is remembered.
const unstartedFor = time.Minute

func (u *unstarted) couldNotStart(program string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.program, u.since = program, time.Now()
}

func (u *unstarted) started(program string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.program == program {
		u.program = ""
	}
}

// mayNotStart reports whether a round could not be started lately.
func (u *unstarted) mayNotStart() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.program != "" && time.Since(u.since) < unstartedFor
}
