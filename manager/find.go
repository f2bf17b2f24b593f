package manager

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// Find returns a page of the tasks that q means, at most so many: the newest first, by when they entered their
// states (open ones by when they may be claimed), or within a group by id; IDs in the order in which they are
// given. After is "" for the first page, and the Next of the one before for another. A task that does not move
// meanwhile comes on one page and on no other; in a group that holds for all tasks.
//
// A page takes half a second at most, or little more: it may have fewer tasks, or none, though there are
// more. An error in q or after is a *[QueryError].
func (m *Manager) Find(ctx context.Context, q Query, after string, most int) (Page, error) {
	if most < 1 {
		return Page{}, &QueryError{fmt.Sprintf("%d tasks cannot be asked for: it has to be from 1 up", most)}
	}
	f, err := m.finder(ctx, q, after)
	if err != nil {
		return Page{}, err
	}
	return f.page(most)
}

// All returns all tasks that q means, as Find does page by page: summaries, without what their rounds printed, their logs
// and checkpoints. [tdf.Task.LastOutput] of such a task panics; [Manager.Task] reads it whole, and [Manager.Results]
// reads many with their outputs. An error is the last that comes.
func (m *Manager) All(ctx context.Context, q Query) iter.Seq2[*tdf.Task, error] {
	return func(yield func(*tdf.Task, error) bool) {
		for after, more := "", true; more; {
			page, err := m.Find(ctx, q, after, idsPerPage)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, t := range page.Tasks {
				if !yield(t, nil) {
					return
				}
			}
			after, more = page.Next, page.Next != ""
		}
	}
}

// lookBounds are those of what one page looks at. The first that is reached ends it.
type lookBounds struct {
	time  time.Duration
	tasks int
	bytes int64 // of texts
}

var usualBounds = lookBounds{time: 400 * time.Millisecond, tasks: 100_000, bytes: 64 << 20}

const (
	leastAtOnce  = 50
	mostAtOnce   = 300 // of each list, and there may be eight: Redis has other clients
	roundsLooked = 2   // the current one and the one before
)

// A finder looks at one task after the other, and at no more than its bounds allow.
type finder struct {
	ctx    context.Context
	store  Store
	q      Query
	bounds lookBounds
	rounds int // how many are looked at of each task
	texts  func(*tdf.Task) []redisstate.TextsOf
	atOnce int
	begun  time.Time

	at     position
	ended  bool
	looked int
	bytes  int64
}

func (m *Manager) finder(ctx context.Context, q Query, after string) (*finder, error) {
	q, err := q.prepared()
	if err != nil {
		return nil, err
	}
	at, err := q.position(after)
	rounds := roundsLooked
	if q.Failure != "" { // as far back as for the groups
		rounds = roundsOfFailures
	}
	f := &finder{
		ctx: ctx, store: m.store, q: q, bounds: usualBounds, rounds: rounds, texts: q.texts,
		atOnce: mostAtOnce, begun: time.Now(), at: at,
	}
	return f, err
}

func (f *finder) page(most int) (Page, error) {
	var page Page
	f.atOnce = min(max(most, leastAtOnce), mostAtOnce)
	err := f.walk(func(t *tdf.Task) bool {
		page.Tasks = append(page.Tasks, t)
		return len(page.Tasks) < most
	})
	page.Looked, page.Next = f.looked, f.next()
	return page, err
}

// next names the page after what was looked at.
func (f *finder) next() string {
	if f.ended {
		return ""
	}
	return f.at.String()
}

// walk calls take with each task that is meant, until that returns false or a bound is reached.
func (f *finder) walk(take func(*tdf.Task) bool) error {
	for more := true; more && !f.ended; more = more && !f.tired() {
		places, last, err := f.places()
		if err != nil {
			return err
		}
		tasks, err := f.look(places)
		if err != nil {
			return err
		}
		passed := 0
		for ; passed < len(tasks) && more; passed++ {
			if t := tasks[passed]; t != nil {
				more = take(t)
			}
			f.at.place = &places[passed]
			f.looked++
		}
		f.ended = last && passed == len(places)
		f.atOnce = min(2*f.atOnce, mostAtOnce)
	}
	return nil
}

func (f *finder) tired() bool {
	return f.looked >= f.bounds.tasks || f.bytes >= f.bounds.bytes || time.Since(f.begun) >= f.bounds.time
}

// places are where the next tasks are found that may be meant.
func (f *finder) places() (places []redisstate.ListEntry, last bool, err error) {
	if len(f.q.IDs) > 0 {
		places, last = f.at.among(f.q.IDs, f.atOnce)
		return places, last, nil
	}
	return f.store.Find(f.ctx, redisstate.ListQuery{
		States: f.q.States, Group: f.q.Group, After: f.q.After, Before: f.q.Before,
		OldestFirst: f.q.OldestFirst, Behind: f.at.place,
	}, f.atOnce)
}

// look reads the tasks at some places; nil stands for one that is not meant. They are fewer than the places
// where the texts are more than may be read.
func (f *finder) look(places []redisstate.ListEntry) ([]*tdf.Task, error) {
	ids := make([]int64, len(places))
	for i, p := range places {
		ids[i], _ = p.ID() // 0 is no task
	}
	heads, err := f.store.Read(f.ctx, ids, redisstate.Want{Fields: redisstate.Head, Keep: f.q.head})
	if err != nil {
		return nil, err
	}
	var meant []int64
	var where []int
	for i, x := range heads {
		if x.Task != nil {
			meant, where = append(meant, x.ID), append(where, i)
		}
	}
	tasks := make([]*tdf.Task, len(places))
	if len(meant) == 0 {
		return tasks, nil
	}
	stored, err := f.store.Read(f.ctx, meant, redisstate.Want{
		Fields: redisstate.Facts, Rounds: redisstate.LastRounds(f.rounds),
		Keep:  func(t *tdf.Task) bool { return f.q.head(t) && f.q.facts(t) },
		Texts: f.texts, MaxBytes: max(1, int(f.bounds.bytes-f.bytes)),
	})
	if err != nil {
		return nil, err
	}
	for i, x := range stored {
		f.bytes += int64(x.Bytes)
		if x.Task != nil && f.q.says(x.Task) {
			tasks[where[i]] = x.Task
		}
	}
	if len(stored) < len(meant) {
		tasks = tasks[:where[len(stored)]]
	}
	return tasks, nil
}
