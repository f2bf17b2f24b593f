package redisstate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

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
	var invalid error
	h, err := s.atRest(ctx, id, func(h tdf.Hash) (err error) {
		invalid, err = s.whole(ctx, id, h)
		return err
	})
	if err != nil {
		return nil, err
	}
	t, err := tdf.ParseTask(id, h)
	return t, cmp.Or(invalid, err)
}

// atRest calls read, which adds to the head of a task, until the task has not moved meanwhile, or has moved often.
func (s *Store) atRest(ctx context.Context, id int64, read func(tdf.Hash) error) (tdf.Hash, error) {
	before := tdf.Hash{}
	if _, err := s.loadOne(ctx, id, before, headFields); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		h := maps.Clone(before)
		if err := read(h); err != nil {
			return nil, err
		}
		after := tdf.Hash{}
		if _, err := s.loadOne(ctx, id, after, headFields); err != nil {
			return nil, err
		}
		if len(h) == 0 || len(after) == 0 && len(before) > 0 {
			return nil, noTask(id) // there is none, or it was removed meanwhile
		}
		if maps.Equal(before, after) || try == wholeTries {
			return h, nil
		}
		before = after
	}
}

func noTask(id int64) error { return fmt.Errorf("task %d: %w", id, tdf.ErrNoTask) }

// whole reads the rest of a task that begins so. Invalid is the first property that is too long to be read.
func (s *Store) whole(ctx context.Context, id int64, h tdf.Hash) (invalid, err error) {
	if invalid, err = s.loadOne(ctx, id, h, bodyFields); err != nil {
		return nil, err
	}
	if err := s.loadAll(ctx, h, []TextsOf{{id, taskTexts}}); err != nil || len(h) == 0 {
		return nil, err
	}
	numbers, err := s.roundNumbers(ctx, id, h.Round())
	if err != nil {
		return nil, err
	}
	tooLong, err := s.loadRounds(ctx, id, h, numbers)
	return cmp.Or(invalid, tooLong), err
}

// fewNames is up to how many properties of a task all names are read at once.
const fewNames = 5000

// roundNumbers returns the rounds up to the current one that have properties; where there are many properties, all
// rounds that there may be.
func (s *Store) roundNumbers(ctx context.Context, id int64, current int) ([]int, error) {
	names, few, err := s.fieldNames(ctx, id)
	if err != nil {
		return nil, err
	}
	numbers := []int{current}
	if !few {
		for i := range current {
			numbers = append(numbers, i)
		}
		return numbers, nil
	}
	for _, name := range names {
		number, _, ofRound := strings.Cut(name, ":")
		if i, err := strconv.Atoi(number); ofRound && err == nil && i >= 0 && i < current {
			numbers = append(numbers, i)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), nil
}

// fieldNames returns the names of a task's properties, if there are few.
func (s *Store) fieldNames(ctx context.Context, id int64) (names []string, few bool, err error) {
	var count *redis.IntCmd
	err = s.pipeline(ctx, func(p redis.Pipeliner) { count = p.HLen(ctx, s.keys.Task(id)) })
	if err != nil || count.Val() > fewNames {
		return nil, false, wrapped("reading a task", err)
	}
	var keys *redis.StringSliceCmd
	err = s.pipeline(ctx, func(p redis.Pipeliner) { keys = p.HKeys(ctx, s.keys.Task(id)) })
	return keys.Val(), true, wrapped("reading a task", err)
}

func wrapped(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: redis: %w", doing, err)
}

func (s *Store) loadOne(ctx context.Context, id int64, h tdf.Hash, names []string) (tooLong, err error) {
	all, err := s.loadFields(ctx, []int64{id}, []tdf.Hash{h}, func(int) []string { return names })
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// loadAll puts properties of one task that were asked for into its hash, however long they are, a few MiB at once.
func (s *Store) loadAll(ctx context.Context, h tdf.Hash, of []TextsOf) error {
	sizes, err := s.sizes(ctx, of)
	if err != nil {
		return err
	}
	for len(of) > 0 {
		n, names := min(fitting(sizes, readAtOnce), namesAtOnce), []string{}
		for _, some := range of[:n] {
			names = append(names, some.Names...)
		}
		var reply *redis.SliceCmd
		err := s.pipeline(ctx, func(p redis.Pipeliner) { reply = p.HMGet(ctx, s.keys.Task(of[0].ID), names...) })
		if err != nil {
			return fmt.Errorf("reading texts: redis: %w", err)
		}
		for i, v := range reply.Val() { // none where the key is no hash
			if v, ok := v.(string); ok {
				h[names[i]] = v
			}
		}
		of, sizes = of[n:], sizes[n:]
	}
	return nil
}

// Round reads one round of a task whole, and no other. It is empty where there is none.
func (s *Store) Round(ctx context.Context, id int64, round int) (*tdf.Round, error) {
	h := tdf.Hash{"round": strconv.Itoa(round)}
	if _, err := s.loadRounds(ctx, id, h, []int{round}); err != nil {
		return nil, err
	}
	t, _ := tdf.ParseTask(id, h)
	return t.Current(), nil
}

// roundsAtOnce is how many rounds are read at once, where they have not printed much.
const roundsAtOnce = 30

// loadRounds puts all properties of some rounds into a hash.
func (s *Store) loadRounds(ctx context.Context, id int64, h tdf.Hash, rounds []int) (tooLong, err error) {
	for some := range slices.Chunk(rounds, roundsAtOnce) {
		var facts []string
		var texts []TextsOf
		for _, i := range some {
			facts = append(facts, roundFields(i, roundFacts)...)
			texts = append(texts, TextsOf{id, roundFields(i, roundTexts)})
		}
		long, err := s.loadOne(ctx, id, h, facts)
		if err != nil {
			return nil, err
		}
		tooLong = cmp.Or(tooLong, long)
		if err := s.loadAll(ctx, h, texts); err != nil {
			return nil, err
		}
	}
	return tooLong, nil
}

// Tasks reads tasks whole, each as it was at one moment unless it is large; nil stands for one that is not there. It
// reads a few MiB at once, and a large task piece by piece, as [Store.Task] does.
func (s *Store) Tasks(ctx context.Context, ids ...int64) ([]*tdf.Task, error) {
	tasks := make([]*tdf.Task, 0, len(ids))
	err := s.eachHash(ctx, ids, func(id int64, h tdf.Hash) error {
		var t *tdf.Task
		if len(h) > 0 {
			t, _ = tdf.ParseTask(id, h) // what makes no sense is for the server to say
		}
		tasks = append(tasks, t)
		return nil
	})
	return tasks, err
}
