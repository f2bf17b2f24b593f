package limits

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
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
	e.Count(tdf.MaxPaused / 2) // users may pause as much
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
	keys := []string{s.Keys.Failing(), s.Keys.Paused(), s.Keys.Held(), s.Keys.WakeServer()}
	_, err := s.Run(ctx, doing, lua.Fault, keys, e.All, conn.Anything)
	return err
}

// HeldSources returns the sources that are held now. Sources are named by [tdf.Properties.SourceName]. Without names,
// it returns all that are held.
func (s *Limiter) HeldSources(ctx context.Context, names ...string) ([]tdf.FailingSource, error) {
	if len(names) == 0 {
		all, err := conn.Ask(ctx, s.Conn, "read what is held", func(r redis.Cmdable) *redis.StringSliceCmd {
			return r.HKeys(ctx, s.Keys.Paused())
		})
		for _, name := range all {
			if source := tdf.SourceOf(name); source != "" {
				names = append(names, source)
			}
		}
		if err != nil || len(names) == 0 {
			return nil, err
		}
	}
	fields, reasons := make([]string, 0, 2*len(names)), make([]string, len(names))
	for i, name := range names {
		fields, reasons[i] = append(fields, name, name+":trial"), tdf.SourceReason(name)
	}
	var entries, held *redis.SliceCmd
	err := s.Pipeline(ctx, "read why sources are held", func(p redis.Pipeliner) {
		entries, held = p.HMGet(ctx, s.Keys.Failing(), fields...), p.HMGet(ctx, s.Keys.Paused(), reasons...)
	})
	if err != nil {
		return nil, err
	}
	var all []tdf.FailingSource
	for i, name := range names {
		if held.Val()[i] == nil {
			continue
		}
		entry, _ := entries.Val()[2*i].(string)
		trial, _ := entries.Val()[2*i+1].(string)
		f, ok := tdf.ParseFailing(name, entry)
		if f.Name = name; ok {
			id, round, _ := strings.Cut(trial, " ")
			f.Trial, _ = strconv.ParseInt(id, 10, 64)
			f.TrialRound, _ = strconv.Atoi(round)
		}
		all = append(all, f)
	}
	return all, nil
}
