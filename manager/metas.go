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
		stretch := redisstate.Stretch{States: tdf.States, Group: group}
		for last := false; !last; {
			var places []redisstate.Place
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

func (m *Manager) yieldMetas(ctx context.Context, places []redisstate.Place, yield func(string, error) bool) (more bool, err error) {
	var wanted []redisstate.TextsOf
	for _, p := range places {
		if id, ok := p.ID(); ok {
			wanted = append(wanted, redisstate.TextsOf{ID: id, Names: []string{"meta"}})
		}
	}
	for len(wanted) > 0 {
		texts, err := m.store.Texts(ctx, wanted, metasAtOnce)
		if err != nil {
			return false, err
		}
		for _, t := range texts {
			if !yield(t[0], nil) {
				return false, nil
			}
		}
		wanted = wanted[len(texts):]
	}
	return true, nil
}
