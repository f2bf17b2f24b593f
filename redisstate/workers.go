package redisstate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

const (
	day  = tdf.Seconds(24 * 60 * 60)
	week = 7 * 24 * time.Hour
)

// A WorkerInfo is what a worker tells about itself.
type WorkerInfo struct {
	Name, Host, Version string
	PID                 int
	Lease               tdf.Seconds
	State               string // starting, working, draining, gone
}

// SeenWorker notes that a worker is alive, and what it says about itself.
func (s *Store) SeenWorker(ctx context.Context, w WorkerInfo) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	err = s.note(ctx, func(p redis.Pipeliner) {
		p.ZAdd(ctx, s.keys.workers(), redis.Z{Score: float64(now), Member: w.Name})
		p.HSet(ctx, s.keys.worker(w.Name), "host", w.Host, "pid", w.PID, "boot", s.boot,
			"version", w.Version, "lease", w.Lease.String(), "state", w.State, "seen", now.String())
		p.Expire(ctx, s.keys.worker(w.Name), week)
		p.ZRemRangeByScore(ctx, s.keys.workers(), "-inf", now.Add(-7*day).String())
		p.SAdd(ctx, s.keys.workerNames(), w.Name)
	})
	if err != nil {
		return fmt.Errorf("registering worker %s: redis: %w", w.Name, err)
	}
	return nil
}

// NumberWorker gives a worker's name its number, the first time that it is seen.
func (s *Store) NumberWorker(ctx context.Context, name string) error {
	return s.persist(ctx, func(ctx context.Context) error {
		key := s.keys.workerNumber(name)
		if n, err := s.rdb.Exists(ctx, key).Result(); err != nil || n > 0 {
			return err
		}
		n, err := s.rdb.Incr(ctx, s.keys.workerCount()).Result() // a number may be left out, none is given twice
		if err == nil {
			err = s.rdb.SetNX(ctx, key, n, 0).Err()
		}
		if err != nil && strings.HasPrefix(err.Error(), "OOM") {
			return nil
		}
		return err
	})
}

// LongestLease returns the longest lease among the workers that were seen within a day.
func (s *Store) LongestLease(ctx context.Context, now tdf.Time) (tdf.Seconds, error) {
	var names []string
	err := s.persist(ctx, func(ctx context.Context) (err error) {
		names, err = s.rdb.ZRangeArgs(ctx, redis.ZRangeArgs{
			Key: s.keys.workers(), ByScore: true, Start: now.Add(-day).String(), Stop: "+inf", Count: 10_000,
		}).Result()
		return err
	})
	if err != nil {
		return 0, err
	}
	leases := make([]*redis.StringCmd, len(names))
	err = s.pipeline(ctx, func(p redis.Pipeliner) {
		for i, name := range names {
			leases[i] = p.HGet(ctx, s.keys.worker(name), "lease")
		}
	})
	var longest tdf.Seconds
	for _, l := range leases {
		if lease, err := tdf.ParseSeconds(l.Val()); err == nil && lease < tdf.Forever {
			longest = max(longest, lease)
		}
	}
	return longest, err
}
