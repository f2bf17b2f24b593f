package redisstate

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

// SeenServer notes that a server is alive, and forgets those that have not been for a day.
func (s *Store) SeenServer(ctx context.Context, name string, now tdf.Time) error {
	return s.note(ctx, func(p redis.Pipeliner) {
		p.ZAdd(ctx, s.keys.servers(), redis.Z{Score: float64(now), Member: name})
		p.ZRemRangeByScore(ctx, s.keys.servers(), "-inf", now.Add(-day).String())
	})
}

// LastServer returns when any server was seen last; 0 if none ever was.
func (s *Store) LastServer(ctx context.Context) (tdf.Time, error) {
	var last tdf.Time
	err := s.persist(ctx, func(ctx context.Context) error {
		newest, err := s.rdb.ZRevRangeWithScores(ctx, s.keys.servers(), 0, 0).Result()
		if len(newest) == 1 {
			last = tdf.Time(newest[0].Score)
		}
		return err
	})
	return last, err
}

// Calm returns the moment before which servers judge no running task: the end of the last
// grace that one of them began. 0 if there never was one.
func (s *Store) Calm(ctx context.Context) (tdf.Time, error) {
	var calm tdf.Time
	err := s.persist(ctx, func(ctx context.Context) error {
		text, err := s.rdb.Get(ctx, s.keys.calm()).Result()
		if err == redis.Nil {
			return nil
		}
		calm, _ = tdf.ParseTime(text)
		return err
	})
	return calm, err
}

// SetCalm tells other servers, and those that start later, of a grace.
func (s *Store) SetCalm(ctx context.Context, until tdf.Time) error {
	return s.note(ctx, func(p redis.Pipeliner) { p.Set(ctx, s.keys.calm(), until.String(), 0) })
}
