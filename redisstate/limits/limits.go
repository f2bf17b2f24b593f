package limits

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// SetLimit sets the limit of a key. The limit holds from the next claim on, and counts the tasks of the key that run
// already.
func (s *Limiter) SetLimit(ctx context.Context, key string, limit tdf.Limit) error {
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
	if err := tdf.CheckLimitKey(key); err != nil {
		return fmt.Errorf("set a limit: %w", err)
	}
	keys := []string{s.Keys.Limits(), s.Keys.Held(), s.Keys.Starts(key), s.Keys.WakeServer()}
	reply, err := s.Run(ctx, fmt.Sprintf("set the limit of %q", key), lua.LimitSet, keys,
		[]any{key, limit, tdf.MaxLimits, keepStarts}, conn.IsNumber)
	if !conn.Unanswered(err) && conn.Number(reply) < 0 {
		return fmt.Errorf("set the limit of %q: more than %d keys would have a limit; remove other limits", key,
			tdf.MaxLimits)
	}
	return err
}

// Limits returns the limits of all keys and how they are used, ordered by key.
func (s *Limiter) Limits(ctx context.Context) ([]tdf.LimitUse, error) {
	keys, err := conn.Ask(ctx, s.Conn, "read limits", func(r redis.Cmdable) *redis.StringSliceCmd {
		return r.HKeys(ctx, s.Keys.Limits())
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(keys)
	all, err := s.LimitUses(ctx, keys...)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(u tdf.LimitUse) bool { return !u.Limited }), nil
}

// These constants bound the work of one call, so that other clients of Redis wait only a few milliseconds.
const (
	MostDue        = 50 // reasons that HeldDue returns, and keys in a call
	runningChecked = 32 // running tasks of a key whose state a call checks
)

// LimitUses returns how the limits of keys are used. If a limit has no room for waiting tasks, LimitUses also removes
// tasks that no longer run from the key's set of running tasks.
func (s *Limiter) LimitUses(ctx context.Context, keys ...string) ([]tdf.LimitUse, error) {
	return s.limitUses(ctx, false, keys)
}

// CheckLimited checks some tasks that are counted by limits, and removes those that no longer run. It checks the tasks
// of 50 keys: those whose last check was the longest time ago, and those whose last check lies in the future because
// the clock was set back.
func (s *Limiter) CheckLimited(ctx context.Context) error {
	const ofFuture = 10
	var first, last *redis.StringSliceCmd
	err := s.Pipeline(ctx, "read the used limits", func(p redis.Pipeliner) {
		first = p.ZRange(ctx, s.Keys.LimitsUsed(), 0, MostDue-ofFuture-1)
		last = p.ZRevRange(ctx, s.Keys.LimitsUsed(), 0, ofFuture-1)
	})
	if err != nil {
		return err
	}
	keys := slices.Concat(first.Val(), last.Val())
	slices.Sort(keys)
	_, err = s.limitUses(ctx, true, slices.Compact(keys))
	return err
}

func (s *Limiter) limitUses(ctx context.Context, check bool, keys []string) ([]tdf.LimitUse, error) {
	var uses []tdf.LimitUse
	for len(keys) > 0 {
		answers, err := s.readLimitUses(ctx, check, keys[:min(len(keys), MostDue)])
		if err != nil {
			return nil, err
		}
		for i, answer := range answers {
			uses = append(uses, readLimitUse(keys[i], conn.List(answer)))
		}
		keys = keys[len(answers):]
	}
	return uses, nil
}

// readLimitUses makes one call, and returns the answers for the first keys: at least one.
func (s *Limiter) readLimitUses(ctx context.Context, check bool, keys []string) (answers []any, err error) {
	e := &conn.Args{}
	e.All = append(e.All, s.Keys.TaskPrefix(), tdf.ReturnPatience.String(), runningChecked)
	e.Flag(check)
	e.Add(keys...)
	reply, err := s.Run(ctx, "read how limits are used", lua.LimitUse, []string{
		s.Keys.Limits(), s.Keys.Due(),
		s.Keys.List(tdf.Open),
	}, e.All, conn.ListOf(1, len(keys), limitUseForm))
	return conn.List(reply), err
}

var limitUseForm = conn.Tuple(conn.IsText, conn.IsText, conn.IsNumber, conn.IsNumber, conn.IsNumber, conn.IsText,
	conn.IsNumber, conn.IsNumber, conn.ManyTexts, conn.IsNumber, conn.IsNumber, conn.IsText)

func readLimitUse(key string, parts []any) tdf.LimitUse {
	u := tdf.LimitUse{Key: key}
	u.Now, _ = tdf.ParseTime(conn.Text(parts[0]))
	if u.Limited = conn.Text(parts[1]) != ""; u.Limited {
		u.Limit = tdf.Limit{AtMost: conn.Number(parts[9]), Starts: conn.Number(parts[10])}
		if u.Limit.AtMost == 0 { // nothing starts, whatever the rate is
			u.Limit.Starts = 0
		}
		u.Limit.AtMost = max(0, u.Limit.AtMost) // below 0: the limit has only a rate
		per, _ := tdf.ParseTime(conn.Text(parts[11]))
		u.Limit.Per = tdf.Seconds(per)
	}
	u.Running, u.Waiting, u.Free, u.Returned, u.Unclaimed = conn.Number(parts[2]), conn.Number(parts[3]),
		conn.Number(parts[4]), conn.Number(parts[6]), conn.Number(parts[7])
	u.NextStart, _ = tdf.ParseTime(conn.Text(parts[5]))
	for _, requirement := range conn.List(parts[8]) {
		u.Unserved = append(u.Unserved, conn.Text(requirement))
	}
	return u
}

// CountedByLimits reports for each task whether the limit of its key counts it. It is true for a task without a key,
// and for a task that does not run.
func (s *Limiter) CountedByLimits(ctx context.Context, all []tdf.Placement) ([]bool, error) {
	scores, err := conn.AskEach(ctx, s.Conn, "read which tasks the limits count", all,
		func(p redis.Pipeliner, x tdf.Placement) *redis.FloatCmd {
			if x.Task == nil || x.Task.State != tdf.Running || x.Task.LimitKey == "" {
				return nil
			}
			return p.ZScore(ctx, s.Keys.Limited(x.Task.LimitKey), strconv.FormatInt(x.ID, 10))
		})
	counted := make([]bool, len(all))
	for i, score := range scores {
		counted[i] = score == nil || score.Err() == nil
	}
	return counted, err
}
