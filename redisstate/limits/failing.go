package limits

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// FailedToStart notes that a worker could not start a source. If the worker is alone, no other live worker may run the
// source. The program and the reason must be short lines, because Redis keeps them for each source. After enough
// failures, the source is held (docs/lifecycle.md, "Held programs").
func (s *Limiter) FailedToStart(ctx context.Context, worker, source string, alone bool, program, why string) error {
	e := &conn.Args{}
	e.Add(source, worker)
	e.Flag(alone)
	e.Count(task.MaxPaused / 2) // users may pause as much
	e.Add(program, why)
	return s.fault(ctx, "note that a program could not be started", e)
}

// Started notes that a source has started: the server then returns its held tasks.
func (s *Limiter) Started(ctx context.Context, source string) error {
	e := &conn.Args{}
	e.Add(source, "")
	return s.fault(ctx, "note that a program has started", e)
}

func (s *Limiter) fault(ctx context.Context, doing string, e *conn.Args) error {
	keys := []string{s.Conn.Keys.Failing(), s.Conn.Keys.Paused(), s.Conn.Keys.Held(), s.Conn.Keys.WakeServer()}
	_, err := s.Conn.Run(ctx, doing, lua.Fault, keys, e.All, conn.Anything)
	return err
}

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
