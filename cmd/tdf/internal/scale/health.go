package scale

import "time"

const (
	failuresInRow = 3 // jobs that end without a worker before submitting pauses
	longestPause  = 30 * time.Minute
)

// A health remembers failures, and decides when the next job may be submitted. The first pause has the length of the
// interval, and each further one is twice as long, up to half an hour.
type health struct {
	interval time.Duration
	refused  int // failed calls of sbatch in a row
	vain     int // jobs in a row that ended without a worker
	until    time.Time
}

// refusal records that a job could not be submitted, and returns the pause.
func (h *health) refusal(now time.Time) time.Duration {
	h.refused++
	return h.pause(now, h.refused-1)
}

func (h *health) submitted() { h.refused = 0 }

// inVain records that a job has ended without a worker. It returns the pause, or 0 if there is none yet.
func (h *health) inVain(now time.Time) time.Duration {
	h.vain++
	if h.vain < failuresInRow {
		return 0
	}
	return h.pause(now, h.vain-failuresInRow)
}

func (h *health) worked() { h.vain = 0 }

func (h *health) pause(now time.Time, doublings int) time.Duration {
	d := min(h.interval, longestPause)
	for range doublings {
		d = min(2*d, longestPause)
	}
	h.until = now.Add(d)
	return d
}

func (h *health) paused(now time.Time) bool { return now.Before(h.until) }

// probing reports whether only one job at a time may be submitted, because the last jobs were in vain.
func (h *health) probing() bool { return h.vain >= failuresInRow }
