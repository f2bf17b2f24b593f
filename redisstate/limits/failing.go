package limits

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// FailedToStart notes that a worker could not start a source. If the worker is alone, no other live worker may run the
// source. The program and the reason must be short lines, because Redis keeps them for each source. After enough
// failures, the source is held (docs/lifecycle.md, "Held programs").
func (s *Limiter) FailedToStart(ctx context.Context, worker, source string, alone bool, program, why string) error {
	const doing = "note that a program could not be started"
	failing, paused, reason := s.Conn.Keys.Failing(), s.Conn.Keys.Paused(), task.SourceReason(source)
	var clock *redis.TimeCmd
	var entry *redis.StringCmd
	var pauses, known *redis.StringSliceCmd
	err := s.Conn.Pipeline(ctx, doing, func(p redis.Pipeliner) {
		clock, entry = p.Time(ctx), p.HGet(ctx, failing, source)
		pauses, known = p.HKeys(ctx, paused), p.HKeys(ctx, failing)
	})
	if err != nil {
		return err
	}
	held := func(source string) bool { return slices.Contains(pauses.Val(), task.SourceReason(source)) }
	f, now := task.ParseFailing(source, entry.Val()), task.At(clock.Val())
	f.Fail(now, worker, held(source))
	f.Program, f.Why = program, why
	holds := !held(source) && f.MustBeHeld(alone) && len(pauses.Val()) < task.MaxPaused/2 // users may pause as much
	if holds {
		f.Since, f.Tried = now, 0
	}
	var gone []string
	if entry.Val() == "" && len(known.Val()) >= maxFailing {
		i := slices.IndexFunc(known.Val(), func(name string) bool { return !held(name) })
		if i < 0 { // the server reads the entries of held sources
			return nil
		}
		gone = known.Val()[i : i+1]
	}
	return s.Conn.BestEffort(ctx, doing, func(p redis.Pipeliner) {
		if len(gone) > 0 {
			p.HDel(ctx, failing, gone...)
		}
		p.HSet(ctx, failing, source, f.String())
		p.Expire(ctx, failing, failingFor)
		if holds { // the server also ends the hold of a source without tasks
			p.HSet(ctx, paused, reason, now.String()+" server")
			p.ZAddNX(ctx, s.Conn.Keys.Held(), redis.Z{Score: float64(now), Member: reason})
			s.wake(ctx, p, s.Conn.Keys.WakeServer(), 1)
		}
	})
}

// Bounds of the hash with the sources that workers could not start.
const (
	maxFailing = 1000
	failingFor = 24 * time.Hour // after the last failure
)

// HeldSources returns the sources that are held now. Sources are named by [task.Properties.SourceName].
func (s *Limiter) HeldSources(ctx context.Context) (all []task.FailingSource, err error) {
	names, err := conn.Ask(ctx, s.Conn, "read what is held", func(r redis.Cmdable) *redis.StringSliceCmd {
		return r.HKeys(ctx, s.Conn.Keys.Paused())
	})
	names = slices.DeleteFunc(names, func(name string) bool { return task.SourceOf(name) == "" })
	if err != nil || len(names) == 0 {
		return nil, err
	}
	entries, err := conn.AskEach(ctx, s.Conn, "read why sources are held", names,
		func(p redis.Pipeliner, name string) *redis.StringCmd {
			return p.HGet(ctx, s.Conn.Keys.Failing(), task.SourceOf(name))
		})
	for i, entry := range entries {
		all = append(all, task.ParseFailing(task.SourceOf(names[i]), entry.Val()))
	}
	return all, err
}
