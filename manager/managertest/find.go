package managertest

import (
	"context"
	"iter"
	"slices"
	"strconv"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// Find orders as Redis does.
func (s store) Find(_ context.Context, of redisstate.ListQuery, most int) (places []redisstate.ListEntry, last bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, e := range s.tasks {
		if p, ok := e.place(id, &of); ok {
			places = append(places, p)
		}
	}
	slices.SortFunc(places, func(a, b redisstate.ListEntry) int {
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
func (e *entry) place(id int64, of *redisstate.ListQuery) (redisstate.ListEntry, bool) {
	p := redisstate.ListEntry{Order: float64(e.score), Member: strconv.FormatInt(id, 10)}
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

func (s store) Between(_ context.Context, from, to tdf.Time, states ...tdf.State) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := int64(0)
	for _, e := range s.tasks {
		if slices.Contains(states, e.state()) && e.score >= from && e.score <= to {
			n++
		}
	}
	return n, nil
}

func (s store) LastID(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastID, nil
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
