package redisstate

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

var (
	// What tells most tasks apart, read of each.
	headFields = []string{"state", "round", "program", "group", "outcome"}
	// What there is to know about a task without its texts.
	bodyFields = []string{
		"source", "start_after", "end_before", "timeout", "max_fails", "max_timeouts", "max_losses", "fail_on",
		"fails", "timeouts", "losses", "releases", "reopens", "revision", "unfit", "ready", "deadline", "lease_until", "not_on",
	}
	roundFacts = slices.Concat(stateNames(), []string{
		"timeout", "failure", "lost", "started", "worker", "claim", "exit", "program_sha256", "seconds", "cpu_seconds",
		"max_rss", "output_bytes", "error_bytes", "progress", "pid", "last_output",
	})
)

func stateNames() []string {
	names := make([]string, len(tdf.States))
	for i, s := range tdf.States {
		names[i] = string(s)
	}
	return names
}

// Glance reads tasks without their texts: the input, meta, checkpoint and log, and what the rounds printed. Of
// the rounds only the last so many are read. At first keep sees a task's state, program, group and
// outcome; one that it does not keep, or that is not there, is nil.
func (s *Store) Glance(ctx context.Context, ids []int64, rounds int, keep func(*tdf.Task) bool) ([]*tdf.Task, error) {
	hashes := make([]tdf.Hash, len(ids))
	for i := range hashes {
		hashes[i] = tdf.Hash{}
	}
	if err := s.loadFields(ctx, ids, hashes, func(int) []string { return headFields }); err != nil {
		return nil, err
	}
	for i, h := range hashes {
		if len(h) == 0 || !keep(head(ids[i], h)) {
			hashes[i] = nil
		}
	}
	if err := s.dropMadeUp(ctx, ids, hashes); err != nil {
		return nil, err
	}
	err := s.loadFields(ctx, ids, hashes, func(i int) []string {
		if hashes[i] == nil {
			return nil
		}
		return facts(currentRound(hashes[i]), rounds)
	})
	tasks := make([]*tdf.Task, len(ids))
	for i, h := range hashes {
		if h != nil {
			tasks[i], _ = tdf.ParseTask(ids[i], h) // what makes no sense is for the server to say
		}
	}
	return tasks, err
}

func head(id int64, h tdf.Hash) *tdf.Task {
	return &tdf.Task{
		ID: id, State: tdf.State(h["state"]), Outcome: h["outcome"], Definition: tdf.Definition{Program: h["program"], Group: h["group"]},
	}
}

// manyRounds is from where on a task's number of rounds is doubted.
const manyRounds = 100

// dropMadeUp takes the round from those hashes of which it can't be true: each round leaves a property at least. Somebody wrote it
// who wanted, or got, more work done than there is.
func (s *Store) dropMadeUp(ctx context.Context, ids []int64, hashes []tdf.Hash) error {
	properties := make([]*redis.IntCmd, len(ids))
	err := s.pipeline(ctx, func(p redis.Pipeliner) {
		for i, h := range hashes {
			if currentRound(h) >= manyRounds {
				properties[i] = p.HLen(ctx, s.keys.Task(ids[i]))
			}
		}
	})
	if err != nil {
		return fmt.Errorf("loading tasks: redis: %w", err)
	}
	for i, n := range properties {
		if n != nil && n.Val() <= int64(currentRound(hashes[i])) {
			delete(hashes[i], "round")
		}
	}
	return nil
}

func facts(current, rounds int) []string {
	names := slices.Clone(bodyFields)
	for i := max(0, current-rounds+1); i <= current; i++ {
		names = append(names, roundFields(i, roundFacts)...)
	}
	return names
}

// TextsOf names properties of a task that may be long.
type TextsOf struct {
	ID    int64
	Names []string // "meta", "0:output"
}

// readAtOnce is how many bytes of texts are asked for in one go.
const readAtOnce = 4 << 20

// Texts reads such properties of one task after the other, until those of the next would make it more than so
// many bytes; those of the first are always read. So there may come fewer than were asked for. What is not
// there is "".
func (s *Store) Texts(ctx context.Context, of []TextsOf, most int64) ([][]string, error) {
	sizes, err := s.sizes(ctx, of)
	if err != nil {
		return nil, err
	}
	of = of[:fitting(sizes, most)]
	sizes = sizes[:len(of)]
	texts := make([][]string, 0, len(of))
	for len(of) > 0 {
		n := fitting(sizes, readAtOnce)
		read, err := s.readTexts(ctx, of[:n], sizes[:n])
		if err != nil {
			return nil, err
		}
		texts = append(texts, read...)
		of, sizes = of[n:], sizes[n:]
	}
	return texts, nil
}

// fitting returns how many of the sizes add up to at most so much; one at least, if there is one.
func fitting(sizes []int64, most int64) int {
	sum := int64(0)
	for i, size := range sizes {
		if sum += size; sum > most && i > 0 {
			return i
		}
	}
	return len(sizes)
}

func sum(sizes []int64) int64 {
	sum := int64(0)
	for _, size := range sizes {
		sum += size
	}
	return sum
}

func (s *Store) sizes(ctx context.Context, of []TextsOf) ([]int64, error) {
	replies := make([][]*redis.IntCmd, len(of))
	err := s.pipeline(ctx, func(p redis.Pipeliner) {
		for i, t := range of {
			replies[i] = nil
			for _, name := range t.Names {
				replies[i] = append(replies[i], p.HStrLen(ctx, s.keys.Task(t.ID), name))
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reading texts: redis: %w", err)
	}
	sizes := make([]int64, len(of))
	for i, lengths := range replies {
		for _, l := range lengths {
			sizes[i] += l.Val()
		}
	}
	return sizes, nil
}

func (s *Store) readTexts(ctx context.Context, of []TextsOf, sizes []int64) ([][]string, error) {
	replies := make([]*redis.SliceCmd, len(of))
	err := s.pipeline(ctx, func(p redis.Pipeliner) {
		for i, t := range of {
			if sizes[i] > 0 {
				replies[i] = p.HMGet(ctx, s.keys.Task(t.ID), t.Names...)
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reading texts: redis: %w", err)
	}
	texts := make([][]string, len(of))
	for i, t := range of {
		texts[i] = make([]string, len(t.Names))
		if replies[i] == nil {
			continue
		}
		for j, v := range replies[i].Val() { // none where the key is no hash
			texts[i][j] = text(v)
		}
	}
	return texts, nil
}
