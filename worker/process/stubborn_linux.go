package process

import "time"

// longestPause is the longest pause between two passes that kill the same processes.
const longestPause = time.Second

// mostPIDs is the largest number of PIDs in a log line.
const mostPIDs = 20

// A stubborn says how long to pause between two passes that kill processes. While the passes find the same processes,
// the pause doubles. The kernel keeps these processes, for example in state D, and more passes would not end them
// sooner. After a pass that finds a new process, the next pass follows soon, so that processes cannot fork faster than
// they are killed.
type stubborn struct {
	first    time.Duration // the pause after the first pass; 0 before that pass
	pause    time.Duration // the next pause
	same     int           // passes in a row that found no new process
	last     map[key]bool  // the processes that the last pass found
	reported bool          // whether isNews has returned true
}

// saw records which processes a pass has found.
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

// isNews says when to log that processes do not end: it returns true once, after the pause has grown to longestPause.
// By then, the passes have found the same processes for about twice this time.
func (s *stubborn) isNews() bool {
	if s.reported || s.pause < longestPause {
		return false
	}
	s.reported = true
	return true
}

// firstPIDs returns the PIDs of the first mostPIDs processes.
func firstPIDs(all []proc) []int {
	pids := make([]int, 0, min(len(all), mostPIDs))
	for _, pr := range all[:min(len(all), mostPIDs)] {
		pids = append(pids, pr.pid)
	}
	return pids
}
