package limits

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// SetLimit sets the limit of a key. The limit holds from the next claim on, and counts the tasks of the key that run
// already.
func (s *Limiter) SetLimit(ctx context.Context, key string, limit task.Limit) error {
	if err := limit.Check(); err != nil {
		return fmt.Errorf("set the limit of %q: %w", key, err)
	}
	return s.writeLimit(ctx, key, limit.String(), limit.KeepStarts())
}

// RemoveLimit removes the limit of a key. The server then returns the waiting tasks of the key.
func (s *Limiter) RemoveLimit(ctx context.Context, key string) error {
	return s.writeLimit(ctx, key, "", 0)
}

func (s *Limiter) writeLimit(ctx context.Context, key, limit string, keepStarts int) error {
	if err := task.CheckLimitKey(key); err != nil {
		return fmt.Errorf("set a limit: %w", err)
	}
	doing := fmt.Sprintf("set the limit of %q", key)
	var exists *redis.BoolCmd
	var n *redis.IntCmd
	all, starts := s.Conn.Keys.Limits(), s.Conn.Keys.Starts(key)
	err := s.Conn.Pipeline(ctx, doing, func(p redis.Pipeliner) { exists, n = p.HExists(ctx, all, key), p.HLen(ctx, all) })
	if err != nil {
		return err
	}
	if limit != "" && !exists.Val() && n.Val() >= task.MaxLimits {
		return fmt.Errorf("%s: more than %d keys would have a limit; remove other limits", doing, task.MaxLimits)
	}
	return s.Conn.Write(ctx, doing, func(p redis.Pipeliner) {
		if limit == "" {
			p.HDel(ctx, all, key)
		} else {
			p.HSet(ctx, all, key, limit)
		}
		if keepStarts == 0 {
			p.Unlink(ctx, starts)
		} else { // the last starts count for the new rate, too
			p.Expire(ctx, starts, time.Duration(keepStarts)*time.Second)
		}
		s.check(ctx, p, task.LimitReason(key))
	})
}

// Limits returns the limits of all keys and how they are used, ordered by key.
func (s *Limiter) Limits(ctx context.Context) ([]task.LimitUse, error) {
	keys, err := conn.Ask(ctx, s.Conn, "read limits", func(r redis.Cmdable) *redis.StringSliceCmd {
		return r.HKeys(ctx, s.Conn.Keys.Limits())
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(keys)
	all, err := s.LimitUses(ctx, keys...)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(u task.LimitUse) bool { return !u.Limited }), nil
}

// usesAtOnce is how many keys a round trip reads.
const usesAtOnce = 500

// LimitUses returns how the limits of keys are used.
func (s *Limiter) LimitUses(ctx context.Context, keys ...string) (uses []task.LimitUse, err error) {
	for some := range slices.Chunk(keys, usesAtOnce) {
		page, err := s.readLimitUses(ctx, some)
		if err != nil {
			return nil, err
		}
		uses = append(uses, page...)
	}
	return uses, nil
}

func (s *Limiter) readLimitUses(ctx context.Context, keys []string) ([]task.LimitUse, error) {
	const doing = "read how limits are used"
	uses := make([]task.LimitUse, len(keys))
	var clock *redis.TimeCmd
	limits, running, waiting := make([]*redis.StringCmd, len(keys)), make([]*redis.IntCmd, len(keys)),
		make([]*redis.IntCmd, len(keys))
	err := s.Conn.Pipeline(ctx, doing, func(p redis.Pipeliner) {
		clock = p.Time(ctx)
		for i, key := range keys {
			limits[i], running[i] = p.HGet(ctx, s.Conn.Keys.Limits(), key), p.ZCard(ctx, s.Conn.Keys.Limited(key))
			waiting[i] = p.ZCard(ctx, s.Conn.Keys.OpenSet(task.LimitReason(key)))
		}
	})
	if err != nil {
		return nil, err
	}
	var rated []int
	for i := range uses {
		u := &uses[i]
		u.Key, u.Running, u.Waiting = keys[i], int(running[i].Val()), int(waiting[i].Val())
		if u.Limit, u.Limited = task.ParseLimit(limits[i].Val()); u.Limit.Starts > 0 {
			rated = append(rated, i)
		}
	}
	starts, err := conn.AskEach(ctx, s.Conn, doing, rated, func(p redis.Pipeliner, i int) *redis.IntCmd {
		since := "(" + task.At(clock.Val()).Add(-task.For(uses[i].Limit.Per)).String()
		return p.ZCount(ctx, s.Conn.Keys.Starts(keys[i]), since, "+inf")
	})
	for k, i := range rated {
		uses[i].Free = max(0, uses[i].Limit.Starts-int(starts[k].Val()))
	}
	return uses, err
}
