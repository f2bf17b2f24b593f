package manager

import (
	"context"
	"iter"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/redisstate"
)

// Results returns the tasks that q means, by their ids and each once, with what the round that ran last ([tdf.Task.LastRun])
// has left: its result, and where printed says so what it printed. They are read in pages, so that only some of
// them are in memory. An error is the last that comes.
func (m *Manager) Results(ctx context.Context, q Query, printed bool) iter.Seq2[*tdf.Task, error] {
	texts := func(t *tdf.Task) []redisstate.TextsOf {
		all := append([]redisstate.TextsOf{listing.OfTask}, redisstate.TextsOf{Round: t.LastRun(), Texts: tdf.TextResult})
		if printed {
			all = append(all, redisstate.TextsOf{Round: t.LastRun(), Texts: tdf.TextOutput}, redisstate.TextsOf{Round: t.LastRun(), Texts: tdf.TextError})
		}
		return all
	}
	return func(yield func(*tdf.Task, error) bool) {
		err := listing.ByID(ctx, m.store, q, texts, func(t *tdf.Task) bool { return yield(t, nil) })
		if err != nil {
			yield(nil, err)
		}
	}
}
