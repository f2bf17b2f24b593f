package listing

import (
	"context"
	"fmt"
	"iter"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// bytesAtOnce limits how many bytes of texts one call reads.
const bytesAtOnce = 4 << 20

// Metas returns the meta of each task of a group, in any state, the newest first. A task that moves meanwhile comes once. A
// task that is opened meanwhile may be missing. An error is the last that comes.
func Metas(ctx context.Context, s Store, group string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		stretch := redisstate.Stretch{States: tdf.States, Group: group}
		for last := false; !last; {
			var places []redisstate.Place
			var err error
			places, last, err = s.Find(ctx, stretch, idsPerPage)
			if err == nil && len(places) > 0 {
				stretch.Behind = &places[len(places)-1]
				var more bool
				if more, err = yieldMetas(ctx, s, places, yield); !more && err == nil {
					return
				}
			}
			if err != nil {
				yield("", fmt.Errorf("read tasks of group %q: %w", group, err))
				return
			}
		}
	}
}

func yieldMetas(ctx context.Context, s Store, places []redisstate.Place, yield func(string, error) bool) (more bool, err error) {
	var wanted []redisstate.TextsOf
	for _, p := range places {
		if id, ok := p.ID(); ok {
			wanted = append(wanted, redisstate.TextsOf{ID: id, Names: []string{"meta"}})
		}
	}
	for len(wanted) > 0 {
		texts, err := s.Texts(ctx, wanted, bytesAtOnce)
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
