package listing

import (
	"context"

	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// A reader reads all tasks that a query selects. While the caller takes the tasks of a part, it reads the next part.
type reader struct {
	store Store
	q     task.Query
	texts func(*task.Task) []redisstate.TextsOf
	after string                        // the cursor in the query
	ids   func() ([]int64, error, bool) // the next ids of the query; nil if its ids do not change

	atOnce int // that of the walk through the next part; 0 before the first part
}

// partBounds keep a part small, because two of them are in memory.
var partBounds = Bounds{Time: PageBounds.Time, Tasks: 1000, Bytes: bytesAtOnce}

// A part has some of the tasks. Its account is charged for them.
type part struct {
	tasks   []*task.Task
	last    bool
	err     error
	account *pool.Account
}

// each calls the function take with each task, until take returns false.
func (r *reader) each(ctx context.Context, take func(*task.Task) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	now, next := r.read(ctx), make(chan part, 1)
	reading := false
	defer func() {
		cancel()
		now.account.End()
		if reading {
			ahead := <-next
			ahead.account.End()
		}
	}()
	for ; ; now = <-next {
		reading = false
		for _, t := range now.tasks {
			if err := pool.Take(ctx, 0); err != nil { // what take does with a task may need long
				return err
			}
			if !take(t) {
				return nil
			}
			if !reading && !now.last && now.err == nil { // not before, because many callers need one task
				reading = true
				go func() { next <- r.read(ctx) }()
			}
		}
		now.account.End()
		switch {
		case now.err != nil || now.last:
			return now.err
		case !reading:
			next <- r.read(ctx)
		}
	}
}

// read reads the next part.
func (r *reader) read(ctx context.Context) part {
	p := part{account: pool.Fork(ctx)}
	p.last, p.err = r.walk(pool.With(ctx, p.account), func(t *task.Task) bool {
		p.tasks = append(p.tasks, t)
		return true
	})
	return p
}

// walk walks through the next part. It returns whether the part is the last one.
func (r *reader) walk(ctx context.Context, take func(*task.Task) bool) (last bool, err error) {
	if r.ids != nil && r.after == "" {
		ids, err, more := r.ids()
		if err != nil || !more {
			return true, err
		}
		r.q.IDs = ids
	}
	w, err := New(ctx, r.store, r.q, r.after)
	if err != nil {
		return true, err
	}
	w.Add(r.texts)
	w.Bounds = partBounds
	if r.atOnce == 0 { // the caller may wait for the first task, or need no other
		w.Bounds.Tasks = 1
	} else {
		w.atOnce = r.atOnce
	}
	err = w.Each(take)
	r.after, r.atOnce = w.Next(), w.atOnce
	return r.ids == nil && r.after == "", err
}
