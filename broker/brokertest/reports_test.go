package brokertest

import (
	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// reportRows are about what a report does.
var reportRows = []row{
	{"completes", nil, func(s *scene) {
		id := s.open()
		_, r := s.begin("w")
		expect.Equal(s, r.id(), id)
		s.is(id, "running 0")
		s.reports(r, ending{result: `{"n":[1]}`}, accepted)
		t := s.settles(id, "succeeded 0")
		expect.Equal(s, t.Current().Exit, "0")
		expect.Equal(s, t.Current().Result, `{"n":[1]}`)
		expect.Contains(s, t.Log, t.Current().Worker)
		expect.True(s, s.worker("v").claim() == nil, "a finished task is claimed")
	}},
	{"fails and runs again", []need{failures}, func(s *scene) {
		id := s.open()
		w, r := s.begin("w")
		s.reports(r, ending{fails: "boom"}, accepted)
		t := s.settles(id, "open 1 fails 1")
		expect.Contains(s, t.Rounds.At(0).Error, "boom")
		expect.Equal(s, t.Rounds.At(0).Exit, "1")
		s.reports(s.claim(w), ending{}, accepted)
		s.settles(id, "succeeded 1 fails 1")
	}},
	{"fails for the last time", []need{failures}, func(s *scene) {
		id := s.open(func(d *tdf.Properties) { d.MaxFails = 0 })
		_, r := s.begin("w")
		s.reports(r, ending{fails: "boom"}, accepted)
		expect.Contains(s, s.settles(id, "failed 0 fails 1").LastError(), "boom")
	}},
	{"report after a cancel", nil, func(s *scene) {
		id := s.open()
		_, r := s.begin("w")
		s.apply(s.task(id).Cancel())
		s.unchanged(func() { s.reports(r, ending{}, refused) })
		s.is(id, "expired 0")
	}},
	{"late report", nil, func(s *scene) {
		id := s.open()
		_, late := s.begin("w")
		s.silence()
		s.settles(id, "open 1 losses 1")
		_, r := s.begin("v")
		s.unchanged(func() { s.reports(late, ending{result: `"late"`}, refused) })
		s.reports(r, ending{result: `"in time"`}, accepted)
		expect.Equal(s, s.settles(id, "succeeded 1 losses 1").Current().Result, `"in time"`)
	}},
}
