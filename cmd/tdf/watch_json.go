package main

import (
	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
)

// object returns the status as --json prints it.
func (w *watching) object(s *admin.Status) any {
	counts := map[tdf.State]int64{}
	for _, state := range tdf.States {
		counts[state] = s.Counts[state]
	}
	type eta struct {
		Low  float64 `json:"low"` // seconds from now
		High float64 `json:"high"`
	}
	o := struct {
		Time      float64             `json:"time"`
		Campaign  string              `json:"campaign,omitempty"`
		Counts    map[tdf.State]int64 `json:"counts"`
		Done      int64               `json:"done"`
		Total     int64               `json:"total"`
		Rate      float64             `json:"rate"` // tasks that finish per second, over the last half minute
		RateSoFar float64             `json:"rate_so_far"`
		Workers   int                 `json:"workers"`
		Slots     int                 `json:"slots"`
		Busy      int                 `json:"busy"`
		Server    float64             `json:"server_seen"`
		Later     int64               `json:"later"` // open tasks that start later; the ETA leaves them out
		Pauses    []pauseJSON         `json:"pauses,omitempty"`
		ETA       *eta                `json:"eta"` // null: unknown
		Unknown   string              `json:"eta_unknown,omitempty"`
	}{
		float64(s.At), w.campaign, counts, s.Done(), s.Counts.Total(), s.Rate, s.RateSoFar,
		s.Workers, s.Slots, s.Busy, float64(s.Server), s.Later, pausesToJSON(s.Pauses), nil, s.Estimate.Unknown,
	}
	if s.Estimate.Unknown == "" {
		o.ETA = &eta{float64(s.Estimate.Low), float64(s.Estimate.High)}
	}
	return o
}

// A pauseJSON is a program that workers pause.
type pauseJSON struct {
	Program string  `json:"program"`
	Workers int     `json:"workers"` // workers that pause it
	Of      int     `json:"of"`      // live workers that claim tasks
	Until   float64 `json:"until"`   // when the first of them tries a round
	Why     string  `json:"why"`
}

func pausesToJSON(pauses []admin.Pause) []pauseJSON {
	var all []pauseJSON
	for _, p := range pauses {
		all = append(all, pauseJSON{p.Program, p.Workers, p.Of, float64(p.Until), p.Why})
	}
	return all
}
