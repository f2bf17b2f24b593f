package redisstate

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// readAtOnce is the largest number of bytes in one reply, unless a single property is longer.
const readAtOnce = 4 << 20

const readTexts = "read texts"

// readLong answers the first questions: as many as the maximum number of bytes allows, but at least one. It returns the
// number of answered questions. It calls the function put for each property that is not empty, with the property's
// value and length. The function limit returns the maximum length of a property. If a property is longer, put gets only
// its length. One reply of Redis has at most a few MiB.
func (s *Store) readLong(ctx context.Context, asked []question, most int, limit func(name string) int,
	put func(i int, name, value string, length int),
) (int, error) {
	lengths, err := s.lengths(ctx, asked)
	if err != nil {
		return 0, err
	}
	sizes, readable := make([]int, len(asked)), make([][]string, len(asked))
	for i, q := range asked {
		for j, name := range q.names {
			if length := lengths[i][j]; length > 0 && length <= limit(name) {
				readable[i] = append(readable[i], name)
				sizes[i] += length
			}
		}
	}
	n := fitting(sizes, most)
	for i, q := range asked[:n] {
		for j, name := range q.names {
			if length := lengths[i][j]; length > limit(name) {
				put(i, name, "", length)
			}
		}
	}
	for from := 0; from < n; {
		to := from + batch(n-from, atMost(namesAtOnce), bound{readAtOnce, func(i int) int { return sizes[from+i] }})
		if err := s.readPieces(ctx, asked[from:to], readable[from:to], func(i int, name, value string) {
			put(from+i, name, value, len(value))
		}); err != nil {
			return 0, err
		}
		from = to
	}
	return n, nil
}

// readPieces reads properties in one pipeline. If successive questions are about the same task, one command reads their
// properties.
func (s *Store) readPieces(ctx context.Context, asked []question, names [][]string, put func(i int, name, value string)) error {
	type piece struct {
		of    []int // for each name, the index of its question
		names []string
		reply *redis.SliceCmd
	}
	var pieces []*piece
	for i := range asked {
		if len(names[i]) == 0 {
			continue
		}
		if len(pieces) == 0 || asked[pieces[len(pieces)-1].of[0]].id != asked[i].id {
			pieces = append(pieces, &piece{})
		}
		last := pieces[len(pieces)-1]
		for _, name := range names[i] {
			last.of, last.names = append(last.of, i), append(last.names, name)
		}
	}
	err := s.pipeline(ctx, readTexts, func(p redis.Pipeliner) {
		for _, x := range pieces {
			x.reply = p.HMGet(ctx, s.keys.Task(asked[x.of[0]].id), x.names...)
		}
	})
	if err != nil {
		return err
	}
	for _, x := range pieces {
		for j, v := range x.reply.Val() { // empty if the key is not a hash
			if value, ok := v.(string); ok {
				put(x.of[j], x.names[j], value)
			}
		}
	}
	return nil
}

// lengths returns the length of each property that the questions ask for.
func (s *Store) lengths(ctx context.Context, asked []question) ([][]int, error) {
	replies := make([][]*redis.IntCmd, len(asked))
	err := s.pipeline(ctx, readTexts, func(p redis.Pipeliner) {
		for i, q := range asked {
			replies[i] = nil
			for _, name := range q.names {
				replies[i] = append(replies[i], p.HStrLen(ctx, s.keys.Task(q.id), name))
			}
		}
	})
	lengths := make([][]int, len(asked))
	for i := range replies {
		for _, l := range replies[i] {
			lengths[i] = append(lengths[i], int(l.Val()))
		}
	}
	return lengths, err
}
