package admin

import (
	"context"
	"fmt"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// pendingValues is the number of values that the loading writes at once.
const pendingValues = 500

// mostKeptLogged is the largest number of values that Load names in its log.
const mostKeptLogged = 20

// value writes a value together with the values of its kind that follow. The tasks before it come first, because a
// group without tasks gets no mark.
func (l *loading) value(ctx context.Context, v redisstate.Value) error {
	if len(l.values) > 0 && (l.values[0].Kind != v.Kind || len(l.values) >= pendingValues) {
		if err := l.flushValues(ctx); err != nil {
			return err
		}
	}
	if len(l.values) == 0 {
		if err := l.flush(ctx); err != nil {
			return err
		}
	}
	l.values = append(l.values, v)
	return nil
}

func (l *loading) flushValues(ctx context.Context) error {
	outcomes, err := l.store.RestoreValues(ctx, l.values...)
	for i, outcome := range outcomes {
		switch v := l.values[i]; outcome {
		case redisstate.ValueRestored:
			l.done.Values++
			if err == nil {
				err = l.keepDefinitions(ctx, v)
			}
		case redisstate.ValueKept:
			l.logKept("the namespace has another value, which it keeps", v)
		case redisstate.ValueNoGroup:
			l.logKept("the group has no tasks, so it is not closed", v)
		}
	}
	l.values = l.values[:0]
	return err
}

func (l *loading) logKept(why string, v redisstate.Value) {
	if l.done.Kept++; l.done.Kept <= mostKeptLogged {
		l.parts.Log.Warn("a value of the dump is not loaded", "kind", string(v.Kind), "name", v.Name, "value", v.Text,
			"why", why)
	}
}

// keepDefinitions makes the stored definitions permanent that the record of a stage names.
func (l *loading) keepDefinitions(ctx context.Context, v redisstate.Value) error {
	if v.Kind != redisstate.ValueStage {
		return nil
	}
	record, err := tdf.ParseStageRecord(v.Text)
	if err != nil || record.Stored == "" {
		return err
	}
	return l.store.KeepDefinitions(ctx, record.Stored)
}

// definitions writes a chunk of stored definitions. If no record of a stage follows, they expire after a day.
func (l *loading) definitions(ctx context.Context, d dumpDefinitions) error {
	definitions, err := redisstate.DecodeDefinitions(d.Data)
	if err == nil {
		err = l.store.RestoreDefinitions(ctx, d.Name, d.Chunk, definitions)
	}
	if err == nil {
		l.done.Values++
	}
	return err
}

// check returns an error if no dump contains such definitions.
func (d *dumpDefinitions) check() error {
	record := tdf.StageRecord{Phase: tdf.StageStored, Done: d.Chunk, Chunks: d.Chunk + 1, Stored: d.Name}
	if _, err := tdf.ParseStageRecord(record.String()); err != nil || d.Name == "" || len(d.Name) > tdf.MaxName {
		return fmt.Errorf("definitions %.100q, chunk %d: invalid name or number", d.Name, d.Chunk)
	}
	if _, err := redisstate.DecodeDefinitions(d.Data); err != nil {
		return fmt.Errorf("definitions %s, chunk %d: %w", d.Name, d.Chunk, err)
	}
	return nil
}
