package redisstate

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

// clockSlack is how far in the future a server's heartbeat may be without a sign that the clock was set back.
const clockSlack = tdf.Seconds(5)

// ServerHeartbeat records that a server is alive. It removes the heartbeats of servers that have been silent for a day.
// It also removes heartbeats from the future, which were written before the clock was set back. A live server soon
// sends a new heartbeat.
func (s *Store) ServerHeartbeat(ctx context.Context, name string, now tdf.Time) error {
	return s.bestEffort(ctx, func(p redis.Pipeliner) {
		p.ZAdd(ctx, s.keys.servers(), redis.Z{Score: float64(now), Member: name})
		p.ZRemRangeByScore(ctx, s.keys.servers(), "-inf", now.Add(-day).String())
		p.ZRemRangeByScore(ctx, s.keys.servers(), "("+now.Add(clockSlack).String(), "+inf")
	})
}

// LastServerHeartbeat returns the time of the latest heartbeat of any server. It returns 0 if there is none.
func (s *Store) LastServerHeartbeat(ctx context.Context) (tdf.Time, error) {
	var last tdf.Time
	err := s.untilAnswered(ctx, func(ctx context.Context) error {
		newest, err := s.rdb.ZRevRangeWithScores(ctx, s.keys.servers(), 0, 0).Result()
		if len(newest) == 1 {
			last = tdf.Time(newest[0].Score)
		}
		return err
	})
	return last, err
}

// A Grace is the grace period of all servers after an outage (docs/guarantees.md, "After an outage"), as Redis holds it.
// The zero Grace means that there never was one.
type Grace struct {
	Running tdf.Time // until then, no running task is lost, timed out or expired
	Open    tdf.Time // until then, no open task expires, since Redis's clock may have leapt

	// CheckFuture means that the clock was set back, and that no server has yet checked all tasks with a time in the
	// future: see [Store.FutureTasks].
	CheckFuture bool
}

// Holds returns the time until which the grace period forbids a move, or 0 if it allows the move.
func (g Grace) Holds(m *tdf.Move) tdf.Time {
	switch {
	case m.Verb == tdf.VerbRescore: // the correction gives a worker more time
		return 0
	case m.Verb == tdf.VerbLose, m.From == tdf.Running && m.To != tdf.None: // the task's worker may have been unable to report
		return g.Running
	case m.From == tdf.Open && m.Verb == tdf.VerbExpire: // the clock may be wrong
		return g.Open
	}
	return 0
}

// Names of fields in the hash `leap`.
const (
	leapUntil = "until"
	leapAhead = "ahead"
)

// Grace returns the latest grace period.
func (s *Store) Grace(ctx context.Context) (Grace, error) {
	var until *redis.StringCmd
	var leap *redis.SliceCmd
	err := s.pipeline(ctx, func(p redis.Pipeliner) {
		until, leap = p.Get(ctx, s.keys.graceUntil()), p.HMGet(ctx, s.keys.leap(), leapUntil, leapAhead)
	})
	if err != nil {
		return Grace{}, fmt.Errorf("read the grace period: redis: %w", err)
	}
	var g Grace
	g.Running, _ = tdf.ParseTime(until.Val())
	if of := leap.Val(); len(of) == 2 {
		g.Open, _ = tdf.ParseTime(text(of[0]))
		g.CheckFuture = of[1] != nil
	}
	return g, nil
}

// SetGrace announces a grace period to other servers, to servers that start later, and to claims.
func (s *Store) SetGrace(ctx context.Context, g Grace) error {
	return s.bestEffort(ctx, func(p redis.Pipeliner) {
		p.Set(ctx, s.keys.graceUntil(), g.Running.String(), 0)
		p.HSet(ctx, s.keys.leap(), leapUntil, g.Open.String())
		if g.CheckFuture {
			p.HSet(ctx, s.keys.leap(), leapAhead, "1")
		}
	})
}

// FutureChecked records that, since the clock was set back, all tasks with a time in the future have been checked.
func (s *Store) FutureChecked(ctx context.Context) error {
	return s.bestEffort(ctx, func(p redis.Pipeliner) { p.HDel(ctx, s.keys.leap(), leapAhead) })
}
