package redisstate

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

const (
	day  = tdf.Seconds(24 * 60 * 60)
	week = 7 * 24 * time.Hour
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

// SeenManager notes that this client waits for judged tasks, and will be back within the span given.
func (s *Store) SeenManager(ctx context.Context, now tdf.Time, within tdf.Seconds) error {
	return s.note(ctx, func(p redis.Pipeliner) {
		p.ZAdd(ctx, s.keys.managers(), redis.Z{Score: float64(now.Add(within)), Member: s.boot})
		p.ZRemRangeByScore(ctx, s.keys.managers(), "-inf", "("+now.String())
	})
}

// GoneManager notes that this client waits no more.
func (s *Store) GoneManager(ctx context.Context) error {
	return s.pipeline(ctx, func(p redis.Pipeliner) {
		p.ZRem(ctx, s.keys.managers(), s.boot)
		p.Del(ctx, s.keys.wakeManager(s.boot))
	})
}

// waitingManagers remembers for a moment whom to wake.
type waitingManagers struct {
	mu    sync.Mutex
	boots []string
	read  time.Time
}

const (
	mostManagers = 16
	aMoment      = 100 * time.Millisecond
)

// managersToWake returns the clients to wake when a task is judged. One that is missing
// here waits a little longer, so an error is none.
func (s *Store) managersToWake(ctx context.Context) []string {
	w := &s.waiting
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.read) < aMoment {
		return w.boots
	}
	boots, err := s.rdb.ZRange(ctx, s.keys.managers(), 0, mostManagers-1).Result()
	w.read = time.Now() // also after an error: it is not asked about at each call
	if err == nil {
		w.boots = boots
	}
	return w.boots
}

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
