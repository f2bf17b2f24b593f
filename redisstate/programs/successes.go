package programs

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

// For an hour, Redis keeps the names of the last two workers on which a program succeeded. A worker asks whether the
// program succeeded on another worker. Two names are enough for the answer, because at most one of them is the worker's
// own name.
const (
	successLife    = time.Hour
	keptSuccesses  = 2
	successesACall = 300 // number of programs; the limit keeps a call in Redis below a few milliseconds
)

// NoteSuccesses records that rounds of these programs succeeded on a worker. It is best effort: losing a record does no
// harm. A worker calls it at most once a minute.
func (s *Archives) NoteSuccesses(ctx context.Context, worker string, programs ...string) error {
	now, err := s.Now(ctx)
	for some := range slices.Chunk(programs, successesACall) {
		if err != nil {
			break
		}
		err = s.BestEffort(ctx, "record successes", func(p redis.Pipeliner) {
			for _, program := range some {
				key := s.Keys.Successes(program)
				p.ZAdd(ctx, key, redis.Z{Score: float64(now), Member: worker})
				p.ZRemRangeByRank(ctx, key, 0, -1-keptSuccesses)
				p.Expire(ctx, key, successLife)
			}
		})
	}
	return err
}

// SucceededElsewhere reports whether a round of the program has succeeded on another worker within the last hour.
func (s *Archives) SucceededElsewhere(ctx context.Context, worker, program string) (bool, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return false, err
	}
	var last *redis.ZSliceCmd
	err = s.Pipeline(ctx, "find successes of program "+program, func(p redis.Pipeliner) {
		last = p.ZRevRangeWithScores(ctx, s.Keys.Successes(program), 0, keptSuccesses-1)
	})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(last.Val(), func(z redis.Z) bool {
		return z.Member != worker && now.Sub(tdf.Time(z.Score)) <= tdf.For(successLife)
	}), nil
}
