package process

import "time"

// longestPause is the longest pause between two passes that kill the same processes.
const longestPause = time.Second

// mostPIDs is how many process ids a log line names.
const mostPIDs = 20

// A stubborn tells how long to pause between passes that kill. The pauses double as long as the passes meet the
// same processes, which the kernel keeps (state D, say): looking more often would not end them sooner.
// A pass that meets a new process is followed soon by the next one, since whatever forks must not win.
type stubborn struct {
	first time.Duration // 0: that of the first pass
	pause time.Duration // the next one
	same  int           // passes in a row that met no process which the pass before had not met
	last  map[key]bool  // those that the last pass met
	told  bool          // isNews was true
}

// saw takes what a pass has met.
func (s *stubborn) saw(left []proc) {
	if s.first == 0 {
		s.first = s.pause
	}
	now, grown := make(map[key]bool, len(left)), false
	for _, pr := range left {
		now[pr.key] = true
		grown = grown || !s.last[pr.key]
	}
	s.last = now
	if grown {
		s.pause, s.same = s.first, 0
		return
	}
	s.pause, s.same = min(2*s.pause, longestPause), s.same+1
}

// isNews says, once, that the same processes have been met for about twice the longest pause.
func (s *stubborn) isNews() bool {
	if s.told || s.pause < longestPause {
		return false
	}
	s.told = true
	return true
}

// some returns the ids of the first processes.
func some(all []proc) []int {
	pids := make([]int, 0, min(len(all), mostPIDs))
	for _, pr := range all[:min(len(all), mostPIDs)] {
		pids = append(pids, pr.pid)
	}
	return pids
}
