package listing

import (
	"context"
	"fmt"
	"iter"

	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// bytesAtOnce is the maximum number of bytes of texts in one call.
const bytesAtOnce = 4 << 20

// A Meta is the meta of a task.
type Meta struct {
	ID   int64
	Text string
}

// Metas returns the meta of each task of a group, newest first. The tasks may have any state. If a task moves during
// the call, Metas still returns its meta exactly once. If a task is opened during the call, its meta may be missing.
// After an error, the sequence ends.
func Metas(ctx context.Context, s Store, group string) iter.Seq2[Meta, error] {
	return func(yield func(Meta, error) bool) {
		if err := eachMeta(ctx, s, group, func(m Meta) bool { return yield(m, nil) }); err != nil {
			yield(Meta{}, fmt.Errorf("read tasks of group %q: %w", group, err))
		}
	}
}

func eachMeta(ctx context.Context, s Store, group string, yield func(Meta) bool) error {
	stretch := redisstate.ListQuery{States: task.States, Group: group}
	for places, err := range stretch.Pages(ctx, s, idsPerPage) {
		if err != nil {
			return err
		}
		more, err := yieldMetas(ctx, s, places, yield)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

func yieldMetas(ctx context.Context, s Store, places []redisstate.ListEntry, yield func(Meta) bool) (bool, error) {
	ids, more := redisstate.IDsOf(places), true
	meta := redisstate.SameTexts(redisstate.TextsOf{Round: redisstate.OfTask, Texts: task.TextMeta})
	for len(ids) > 0 && more {
		err := pool.Part(ctx, func(ctx context.Context) (kept int64, err error) {
			stored, err := s.Read(ctx, ids, redisstate.Want{Texts: meta, MaxBytes: bytesAtOnce})
			for i := 0; i < len(stored) && more; i++ {
				more = yield(Meta{stored[i].ID, stored[i].Task.Meta})
			}
			ids = ids[len(stored):]
			return 0, err
		})
		if err != nil {
			return false, err
		}
	}
	return more, nil
}
