package manager

import (
	"context"
	"fmt"
	"iter"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// metasAtOnce bounds what one call for texts asks for, in bytes.
const metasAtOnce = 4 << 20

// Metas returns the meta of each task that a group has, whatever its state, the newest first. A task that moves
// meanwhile comes once, and one that is opened meanwhile may be missing. An error is the last that comes.
func (m *Manager) Metas(ctx context.Context, group string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		stretch := redisstate.ListQuery{States: tdf.States, Group: group}
		for last := false; !last; {
			var places []redisstate.ListEntry
			var err error
			places, last, err = m.store.Find(ctx, stretch, idsPerPage)
			if err == nil && len(places) > 0 {
				stretch.Behind = &places[len(places)-1]
				var more bool
				if more, err = m.yieldMetas(ctx, places, yield); !more && err == nil {
					return
				}
			}
			if err != nil {
				yield("", fmt.Errorf("reading the tasks of group %q: %w", group, err))
				return
			}
		}
	}
}

func (m *Manager) yieldMetas(ctx context.Context, places []redisstate.ListEntry, yield func(string, error) bool) (more bool, err error) {
	ids := idsAt(places)
	meta := redisstate.SameTexts(redisstate.TextsOf{Round: redisstate.OfTask, Texts: tdf.TextMeta})
	for len(ids) > 0 {
		stored, err := m.store.Read(ctx, ids, redisstate.Want{Texts: meta, MaxBytes: metasAtOnce})
		if err != nil {
			return false, err
		}
		for _, x := range stored {
			if !yield(x.Task.Meta, nil) {
				return false, nil
			}
		}
		ids = ids[len(stored):]
	}
	return true, nil
}

// idsAt returns the ids of the tasks at these places.
func idsAt(places []redisstate.ListEntry) (ids []int64) {
	for _, p := range places {
		if id, ok := p.ID(); ok {
			ids = append(ids, id)
		}
	}
	return ids
}
