package managertest

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// Find orders as Redis does.
func (s store) Find(_ context.Context, of redisstate.Stretch, most int) (places []redisstate.Place, last bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, e := range s.tasks {
		if p, ok := e.place(id, &of); ok {
			places = append(places, p)
		}
	}
	slices.SortFunc(places, func(a, b redisstate.Place) int {
		if of.OldestFirst {
			return a.Compare(b)
		}
		return b.Compare(a)
	})
	if len(places) > most {
		return places[:most], false, nil
	}
	return places, true, nil
}

// place returns the task's place in a stretch, if it has one.
func (e *entry) place(id int64, of *redisstate.Stretch) (redisstate.Place, bool) {
	p := redisstate.Place{Order: float64(e.score), Member: strconv.FormatInt(id, 10)}
	within := e.state() == tdf.Open || e.state() == tdf.Executed || e.score >= of.After && (of.Before == 0 || e.score < of.Before)
	if of.Group != "" {
		p.Order, within = float64(id), e.group() == of.Group
	}
	if of.Behind != nil {
		behind := p.Compare(*of.Behind)
		within = within && (of.OldestFirst && behind > 0 || !of.OldestFirst && behind < 0)
	}
	return p, within && slices.Contains(of.States, e.state())
}

func (s store) Glance(_ context.Context, ids []int64, _ int, keep func(*tdf.Task) bool) ([]*tdf.Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tasks := make([]*tdf.Task, len(ids))
	for i, id := range ids {
		if e := s.tasks[id]; e != nil {
			facts := maps.Clone(e.hash)
			maps.DeleteFunc(facts, isText)
			if t, _ := tdf.ParseSummary(id, facts); keep(t) {
				tasks[i] = t
			}
		}
	}
	return tasks, nil
}

func isText(name, _ string) bool {
	_, of, ofRound := strings.Cut(name, ":")
	return !ofRound && slices.Contains([]string{"input", "meta", "log"}, name) ||
		ofRound && slices.Contains([]string{tdf.RoundOutput, tdf.RoundError}, of)
}

// Texts has room for all of them.
func (s store) Texts(_ context.Context, of []redisstate.TextsOf, _ int64) ([][]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	texts := make([][]string, len(of))
	for i, t := range of {
		texts[i] = make([]string, len(t.Names))
		if e := s.tasks[t.ID]; e != nil {
			for j, name := range t.Names {
				texts[i][j] = e.hash[name]
			}
		}
	}
	return texts, nil
}

func (s store) IDs(_ context.Context, most int64) iter.Seq2[[]int64, error] {
	return func(yield func([]int64, error) bool) {
		s.mu.Lock()
		ids := s.ids()
		s.mu.Unlock()
		for page := range slices.Chunk(ids, int(most)) {
			if !yield(page, nil) {
				return
			}
		}
	}
}
