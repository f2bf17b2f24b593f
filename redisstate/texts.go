package redisstate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

// TextsOf names properties of a task that may be long.
type TextsOf struct {
	ID    int64
	Names []string // "meta", "0:output"
}

// readAtOnce is how many bytes of texts are asked for in one go.
const readAtOnce = 4 << 20

// Texts reads such properties of one task after the other, until those of the next would make it more than so
// many bytes; those of the first are always read. So there may come fewer than were asked for. What is not
// there is "". A property that is too long to be valid is not read: the text says how long it is. Only logs, checkpoints, and
// what rounds leave may have any length.
func (s *Store) Texts(ctx context.Context, of []TextsOf, most int64) ([][]string, error) {
	lengths, err := s.lengths(ctx, of)
	if err != nil {
		return nil, err
	}
	of = slices.Clone(of)
	instead := map[*string]string{}
	sizes := make([]int64, len(of))
	for i := range of {
		of[i].Names = slices.Clone(of[i].Names)
		for j, name := range of[i].Names {
			if long := lengths[i][j]; long > longestField && !mayBeLong(name) {
				of[i].Names[j] = "" // there is no such property
				instead[&of[i].Names[j]] = fmt.Sprintf("(%d bytes, too long to be valid)", long)
				continue
			}
			sizes[i] += lengths[i][j]
		}
	}
	of = of[:fitting(sizes, most)]
	texts, err := s.readAllTexts(ctx, of, sizes)
	if err != nil {
		return nil, err
	}
	for i := range texts {
		for j := range texts[i] {
			if text, long := instead[&of[i].Names[j]]; long {
				texts[i][j] = text
			}
		}
	}
	return texts, nil
}

// mayBeLong reports whether valid tasks have properties of that name that are longer than longestField.
func mayBeLong(name string) bool {
	_, ofRound, found := strings.Cut(name, ":")
	if found {
		return slices.Contains(roundTexts, ofRound)
	}
	return name == "log" || name == tdf.FieldCheckpoint
}

func (s *Store) readAllTexts(ctx context.Context, of []TextsOf, sizes []int64) ([][]string, error) {
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

// sizes returns how long the texts of each task are together.
func (s *Store) sizes(ctx context.Context, of []TextsOf) ([]int64, error) {
	lengths, err := s.lengths(ctx, of)
	sizes := make([]int64, len(lengths))
	for i := range lengths {
		sizes[i] = sum(lengths[i])
	}
	return sizes, err
}

// lengths returns how long each of the texts is.
func (s *Store) lengths(ctx context.Context, of []TextsOf) ([][]int64, error) {
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
	lengths := make([][]int64, len(of))
	for i := range replies {
		for _, l := range replies[i] {
			lengths[i] = append(lengths[i], l.Val())
		}
	}
	return lengths, nil
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
