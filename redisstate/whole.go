package redisstate

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	"github.com/tdf-framework/tdf"
)

// What a task and its rounds have beside facts.
var (
	taskTexts  = []string{"input", "meta", "log", tdf.FieldCheckpoint}
	roundTexts = []string{tdf.RoundOutput, tdf.RoundError, tdf.RoundTail, "result"}
)

// wholeTries is how often a task is read that moves meanwhile.
const wholeTries = 3

// Task reads a task whole, however many rounds it has and whatever these printed: piece by piece, so that Redis does not
// keep others waiting. The error is [tdf.ErrNoTask] where there is none. A task that came by other hands and makes no
// sense is returned together with a *[tdf.PropertyError].
func (s *Store) Task(ctx context.Context, id int64) (*tdf.Task, error) {
	before := tdf.Hash{}
	if err := s.loadOne(ctx, 0, id, before, headFields); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		h, err := s.whole(ctx, id, before)
		if err != nil {
			return nil, err
		}
		after := tdf.Hash{}
		if err := s.loadOne(ctx, 0, id, after, headFields); err != nil {
			return nil, err
		}
		if len(after) == 0 && len(before) > 0 {
			return nil, noTask(id) // it was removed meanwhile
		}
		if maps.Equal(before, after) || try == wholeTries {
			return tdf.ParseTask(id, h)
		}
		before = after
	}
}

func noTask(id int64) error { return fmt.Errorf("task %d: %w", id, tdf.ErrNoTask) }

// whole reads the rest of a task that begins so.
func (s *Store) whole(ctx context.Context, id int64, head tdf.Hash) (tdf.Hash, error) {
	h := maps.Clone(head)
	if err := s.loadOne(ctx, 0, id, h, bodyFields); err != nil {
		return nil, err
	}
	if err := s.loadSized(ctx, id, h, taskTexts); err != nil {
		return nil, err
	}
	if len(h) == 0 {
		return nil, noTask(id)
	}
	if err := s.dropMadeUp(ctx, []int64{id}, []tdf.Hash{h}); err != nil {
		return nil, err
	}
	return h, s.loadRounds(ctx, id, h, 0, currentRound(h))
}

func (s *Store) loadOne(ctx context.Context, bytes int, id int64, h tdf.Hash, names []string) error {
	return s.loadLarge(ctx, bytes, []int64{id}, []tdf.Hash{h}, func(int) []string { return names })
}

// loadSized is loadOne for properties that may be large.
func (s *Store) loadSized(ctx context.Context, id int64, h tdf.Hash, names []string) error {
	sizes, err := s.sizes(ctx, []TextsOf{{id, names}})
	if err != nil {
		return err
	}
	return s.loadOne(ctx, int(sizes[0]), id, h, names)
}

// Round reads one round of a task whole, and no other. It is empty where there is none.
func (s *Store) Round(ctx context.Context, id int64, round int) (tdf.Round, error) {
	h := tdf.Hash{"round": strconv.Itoa(round)}
	if err := s.loadRounds(ctx, id, h, round, round); err != nil {
		return tdf.Round{}, err
	}
	t, _ := tdf.ParseTask(id, h)
	return *t.Current(), nil
}

// roundsAtOnce is how many rounds are read at once, where they have not printed much.
const roundsAtOnce = 30

// loadRounds puts all properties of some rounds into a hash.
func (s *Store) loadRounds(ctx context.Context, id int64, h tdf.Hash, first, last int) error {
	for first <= last {
		var of []TextsOf
		for i := first; i <= min(last, first+roundsAtOnce-1); i++ {
			of = append(of, TextsOf{id, roundFields(i, roundTexts)})
		}
		sizes, err := s.sizes(ctx, of)
		if err != nil {
			return err
		}
		n, bytes, names := fitting(sizes, readAtOnce), 0, []string{}
		for i := range n {
			bytes += int(sizes[i])
			names = append(append(names, of[i].Names...), roundFields(first+i, roundFacts)...)
		}
		if err := s.loadOne(ctx, bytes, id, h, names); err != nil {
			return err
		}
		first += n
	}
	return nil
}
