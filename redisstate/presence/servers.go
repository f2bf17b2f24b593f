package presence

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// clockSlack is the tolerance for times in the future. If a heartbeat is later than now by more than clockSlack, the
// clock was set back.
const clockSlack = task.Seconds(5)

// ServerHeartbeat records that a server is alive. It removes the heartbeats of servers that have been silent for a day.
// It also removes heartbeats with a time in the future, because the clock was set back after them. A live server soon
// sends a new heartbeat.
func (s *Presence) ServerHeartbeat(ctx context.Context, name string, now task.Time) error {
	return s.Conn.BestEffort(ctx, "send the heartbeat of a server", func(p redis.Pipeliner) {
		p.ZAdd(ctx, s.Conn.Keys.Servers(), redis.Z{Score: float64(now), Member: name})
		p.ZRemRangeByScore(ctx, s.Conn.Keys.Servers(), "-inf", now.Add(-day).String())
		p.ZRemRangeByScore(ctx, s.Conn.Keys.Servers(), "("+now.Add(clockSlack).String(), "+inf")
	})
}

// LastServerHeartbeat returns the time of the latest heartbeat of any server, or 0 if no heartbeat is stored.
func (s *Presence) LastServerHeartbeat(ctx context.Context) (task.Time, error) {
	newest, err := conn.Ask(ctx, s.Conn, "read the heartbeats of servers", func(r redis.Cmdable) *redis.ZSliceCmd {
		return r.ZRevRangeWithScores(ctx, s.Conn.Keys.Servers(), 0, 0)
	})
	if len(newest) == 0 {
		return 0, err
	}
	return task.Time(newest[0].Score), err
}

// Names of fields in the hash `leap`.
const (
	leapUntil = "until"
	leapAhead = "ahead"
)

// Grace returns the latest grace period.
func (s *Presence) Grace(ctx context.Context) (rules.Grace, error) {
	var until *redis.StringCmd
	var leap *redis.SliceCmd
	err := s.Conn.Pipeline(ctx, "read the grace period", func(p redis.Pipeliner) {
		until, leap = p.Get(ctx, s.Conn.Keys.GraceUntil()), p.HMGet(ctx, s.Conn.Keys.Leap(), leapUntil, leapAhead)
	})
	if err != nil {
		return rules.Grace{}, err
	}
	var g rules.Grace
	g.Running, _ = task.ParseTime(until.Val())
	if of := leap.Val(); len(of) == 2 {
		g.Open, _ = task.ParseTime(conn.Text(of[0]))
		g.CheckFuture = of[1] != nil
	}
	return g, nil
}

// SetGrace stores a grace period in Redis. Other servers, later servers and claims then respect it.
func (s *Presence) SetGrace(ctx context.Context, g rules.Grace) error {
	return s.Conn.BestEffort(ctx, "store the grace period", func(p redis.Pipeliner) {
		p.Set(ctx, s.Conn.Keys.GraceUntil(), g.Running.String(), 0)
		p.HSet(ctx, s.Conn.Keys.Leap(), leapUntil, g.Open.String())
		if g.CheckFuture {
			p.HSet(ctx, s.Conn.Keys.Leap(), leapAhead, "1")
		}
	})
}

// FutureChecked records that a server has checked all tasks with a time in the future, after the clock was set back.
func (s *Presence) FutureChecked(ctx context.Context) error {
	return s.Conn.BestEffort(ctx, "store the grace period",
		func(p redis.Pipeliner) { p.HDel(ctx, s.Conn.Keys.Leap(), leapAhead) })
}
