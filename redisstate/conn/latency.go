package conn

import (
	"slices"
	"sync"
	"time"
)

// LatencyBounds are the upper bounds of the counts of a [Latency].
var LatencyBounds = []time.Duration{
	500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond,
	25 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second, 10 * time.Second,
}

// A Latency says how long calls have waited for Redis's answer.
type Latency struct {
	// of the calls up to each of LatencyBounds and above the one before; the last element counts the longer calls
	Counts []int64
	Sum    time.Duration
}

type latencies struct {
	mu sync.Mutex
	Latency
}

func (l *latencies) add(took time.Duration) {
	i := slices.IndexFunc(LatencyBounds, func(bound time.Duration) bool { return took <= bound })
	if i < 0 {
		i = len(LatencyBounds)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Counts == nil {
		l.Counts = make([]int64, len(LatencyBounds)+1)
	}
	l.Counts[i]++
	l.Sum += took
}

// Latency returns how long the calls of this client have waited for Redis's answers. Waits for wake tokens do not
// count.
func (s *Conn) Latency() Latency {
	s.latencies.mu.Lock()
	defer s.latencies.mu.Unlock()
	return Latency{slices.Clone(s.latencies.Counts), s.latencies.Sum}
}
