package dashboard

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/format"
)

// A history shows the tasks that ended in the last hour or the last day.
type history struct {
	ID, Name string
	admin.Period
	Highest float64 // ends a minute in the step with the most of them
	// the paths of the chart: tasks that succeeded, those above them that failed, and times without counts
	Good, Bad, Gaps string
}

// Sizes of the chart of a history.
const (
	historyWidth  = 600
	historyHeight = 80
)

// historyEvery is how old the history may be, because it adds the counts of up to a thousand queues.
const historyEvery = 5 * time.Second

func histories(now time.Time, h admin.History) []history {
	return []history{
		historyOf("hour", "Last hour", now.Add(-time.Hour), now, h.Hour),
		historyOf("day", "Last day", now.Add(-24*time.Hour), now, h.Day),
	}
}

// historyOf draws a bar for each step: as wide as its time, and as high as the tasks that ended a minute.
func historyOf(id, name string, from, to time.Time, p admin.Period) history {
	h := history{ID: id, Name: name, Period: p}
	for _, step := range p.Steps {
		if !step.Gap {
			good, bad := step.PerMinute()
			h.Highest = max(h.Highest, good+bad)
		}
	}
	at := func(t time.Time) float64 {
		share := float64(t.Sub(from)) / float64(to.Sub(from))
		return historyWidth * min(max(share, 0), 1)
	}
	var good, bad, gaps strings.Builder
	for _, step := range p.Steps {
		left, right := at(step.From), at(step.To)
		if step.Gap {
			rectangle(&gaps, left, right, 0, historyHeight)
			continue
		}
		succeeded, failed := step.PerMinute()
		scale := historyHeight / max(h.Highest, 1e-9)
		rectangle(&good, left, right, 0, succeeded*scale)
		rectangle(&bad, left, right, succeeded*scale, (succeeded+failed)*scale)
	}
	h.Good, h.Bad, h.Gaps = good.String(), bad.String(), gaps.String()
	return h
}

// rectangle adds a rectangle to a path. Low and high are distances from the bottom of the chart. A rectangle without a
// height adds nothing.
func rectangle(path *strings.Builder, left, right, low, high float64) {
	if high > low {
		fmt.Fprintf(path, "M%.1f %.1fV%.1fH%.1fV%.1fz", left, historyHeight-low, historyHeight-high, right,
			historyHeight-low)
	}
}

// minutely returns how many tasks of a step ended a minute, as a text.
func minutely(s admin.Interval) string {
	good, bad := s.PerMinute()
	if s.Gap {
		return "no counts"
	}
	return perMinute(good + bad)
}

// perMinute formats a rate with three digits, or as a whole number.
func perMinute(rate float64) string {
	if rate >= 100 {
		return number(int64(math.Round(rate)))
	}
	return format.PerSecond(rate)
}
