package redisstate

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

// Bounds of what is read of whole tasks at once, beside readAtOnce.
const (
	hashesAtOnce = 500
	hashesUnseen = 16   // where Redis does not tell how large they are
	smallHash    = 1000 // properties: Redis writes out one hash without doing anything else
)

// eachHash reads tasks whole and calls each for every one in turn, with an empty hash where there is none.
func (s *Store) eachHash(ctx context.Context, ids []int64, each func(id int64, h tdf.Hash) error) error {
	for page := range slices.Chunk(ids, hashesAtOnce) {
		sizes, err := s.hashSizes(ctx, page)
		if err != nil {
			return err
		}
		for len(page) > 0 {
			n := fitting(sizes, readAtOnce)
			hashes, err := s.hashes(ctx, page[:n], sizes[:n])
			if err != nil {
				return fmt.Errorf("reading tasks: redis: %w", err)
			}
			for i, h := range hashes {
				if err := each(page[i], h); err != nil {
					return err
				}
			}
			page, sizes = page[n:], sizes[n:]
		}
	}
	return nil
}

// hashSizes returns how much of what is read at once each task takes.
func (s *Store) hashSizes(ctx context.Context, ids []int64) ([]int64, error) {
	counts, err := s.fieldCounts(ctx, ids)
	if err != nil {
		return nil, err
	}
	sizes, told, err := s.memory(ctx, ids, counts)
	if err != nil {
		return nil, err
	}
	for i, n := range counts {
		switch {
		case n > smallHash:
			sizes[i] = readAtOnce + 1
		case !told:
			sizes[i] = readAtOnce / hashesUnseen
		}
	}
	return sizes, nil
}

func (s *Store) fieldCounts(ctx context.Context, ids []int64) ([]int64, error) {
	replies := make([]*redis.IntCmd, len(ids))
	err := s.pipeline(ctx, func(p redis.Pipeliner) {
		for i, id := range ids {
			replies[i] = p.HLen(ctx, s.keys.Task(id))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reading tasks: redis: %w", err)
	}
	counts := make([]int64, len(ids))
	for i, r := range replies {
		counts[i] = r.Val()
	}
	return counts, nil
}

// hashes reads tasks of these sizes: several small ones, or one that may be large.
func (s *Store) hashes(ctx context.Context, ids []int64, sizes []int64) ([]tdf.Hash, error) {
	if sizes[0] > readAtOnce {
		h, err := s.largeHash(ctx, ids[0])
		return []tdf.Hash{h}, err
	}
	replies := make([]*redis.MapStringStringCmd, len(ids))
	err := s.pipeline(ctx, func(p redis.Pipeliner) {
		for i, id := range ids {
			replies[i] = p.HGetAll(ctx, s.keys.Task(id))
		}
	})
	hashes := make([]tdf.Hash, len(ids))
	for i, r := range replies {
		hashes[i] = r.Val()
	}
	return hashes, err
}

// largeHash reads a task piece by piece; nil stands for one that is not there.
func (s *Store) largeHash(ctx context.Context, id int64) (tdf.Hash, error) {
	h, err := s.atRest(ctx, id, func(h tdf.Hash) error {
		names, few, err := s.fieldNames(ctx, id)
		if err != nil {
			return err
		}
		if !few {
			return s.scanHash(ctx, id, h)
		}
		return s.loadAll(ctx, h, oneByOne(id, names))
	})
	if errors.Is(err, tdf.ErrNoTask) {
		return nil, nil
	}
	return h, err
}

// scanAtOnce is how many properties of a task with very many are looked up at once.
const scanAtOnce = 100

//go:embed names.lua
var namesSource string

var namesScript = redis.NewScript(namesSource)

// scanHash reads a task with very many properties: some names at a time, and then their values, a few MiB at once.
func (s *Store) scanHash(ctx context.Context, id int64, h tdf.Hash) error {
	for cursor := "0"; ; {
		reply, err := s.run(ctx, namesScript, []string{s.keys.Task(id)}, []any{cursor, scanAtOnce, readAtOnce})
		if err != nil {
			return fmt.Errorf("reading a task: redis: %w", err)
		}
		page := list(reply)
		if len(page) != 2 {
			return fmt.Errorf("reading a task: the script returned %d values, not a cursor and names", len(page))
		}
		if err := s.loadAll(ctx, h, oneByOne(id, list(page[1]))); err != nil {
			return err
		}
		if cursor = text(page[0]); cursor == "0" {
			return nil
		}
	}
}

// oneByOne asks for each property by itself.
func oneByOne[N any](id int64, names []N) []TextsOf {
	of := make([]TextsOf, len(names))
	for i, name := range names {
		of[i] = TextsOf{id, []string{text(name)}}
	}
	return of
}
