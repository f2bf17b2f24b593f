package manager

import (
	"context"
	"iter"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// Results returns the tasks that q means, by their ids and each once, with what the round that ran last ([tdf.Task.LastRun])
// has left: its result, and where printed says so what it printed. They are read in pages, so that only some of
// them are in memory. An error is the last that comes.
func (m *Manager) Results(ctx context.Context, q Query, printed bool) iter.Seq2[*tdf.Task, error] {
	ofRun := tdf.TextResult
	if printed {
		ofRun |= tdf.TextOutput | tdf.TextError
	}
	texts := func(t *tdf.Task) []redisstate.TextsOf {
		return []redisstate.TextsOf{ofTask, {Round: t.LastRun(), Texts: ofRun}}
	}
	q.OldestFirst = true
	return func(yield func(*tdf.Task, error) bool) {
		_, err := q.prepared()
		if err == nil {
			err = m.byID(ctx, q, func(q Query) (bool, error) {
				return m.readAll(ctx, q, texts, func(t *tdf.Task) bool { return yield(t, nil) })
			})
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// byID calls read with queries that mean together what q means, by id, until it returns false. Without a group,
// which has an index by id, these are all ids there are, some at a time.
func (m *Manager) byID(ctx context.Context, q Query, read func(Query) (bool, error)) error {
	if len(q.IDs) > 0 || q.Group != "" {
		q.IDs = slices.Sorted(slices.Values(q.IDs))
		_, err := read(q)
		return err
	}
	for ids, err := range m.store.IDs(ctx, idsPerPage) {
		if err != nil {
			return err
		}
		q.IDs = ids
		if more, err := read(q); err != nil || !more {
			return err
		}
	}
	return nil
}

// readAll calls take with the tasks that q means, with these texts, until it returns false.
func (m *Manager) readAll(ctx context.Context, q Query, texts func(*tdf.Task) []redisstate.TextsOf, take func(*tdf.Task) bool) (more bool, err error) {
	more = true
	for after := ""; more; {
		f, err := m.finder(ctx, q, after)
		if err != nil {
			return false, err
		}
		f.texts = func(t *tdf.Task) []redisstate.TextsOf { return append(texts(t), f.q.searched(t)...) }
		err = f.walk(func(t *tdf.Task) bool {
			more = take(t)
			return more
		})
		if after = f.next(); err != nil || after == "" {
			return more, err
		}
	}
	return false, nil
}
