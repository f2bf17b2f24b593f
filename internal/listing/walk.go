package listing

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/callbacks"
)

// Store lists the methods of a *redisstate.Store that this package uses.
type Store interface {
	Find(ctx context.Context, of redisstate.ListQuery, most int) (places []redisstate.ListEntry, last bool, err error)
	Read(ctx context.Context, ids []int64, want redisstate.Want) ([]redisstate.Stored, error)
	IDs(ctx context.Context, most int64) iter.Seq2[[]int64, error]
	FailedCallbacks(ctx context.Context, most int) ([]callbacks.Failure, error)
}

// Bounds limit the work for one page. A page ends when it reaches one of its bounds.
type Bounds struct {
	Time  time.Duration
	Tasks int
	Bytes int64 // size of the texts
}

// PageBounds are the bounds of an ordinary page.
var PageBounds = Bounds{Time: 400 * time.Millisecond, Tasks: 100_000, Bytes: 16 << 20}

const (
	leastAtOnce = 50

	// mostAtOnce is the maximum number of tasks of one list in one call. A call reads up to eight lists, and other
	// clients of Redis must not wait long for its end.
	mostAtOnce = 300

	// SummaryRounds is the number of rounds in a summary: the current round and the previous one.
	SummaryRounds = 2
	// FailureRounds is the number of rounds that are searched for failures, from the last round backwards.
	FailureRounds = 10
)

// A Walk reads tasks one by one, within its bounds. Set its exported fields before the first call of Each.
type Walk struct {
	Query  task.Query                            // the query with its defaults
	Bounds Bounds                                // default: PageBounds
	Rounds int                                   // the number of rounds that are read of each task
	Texts  func(*task.Task) []redisstate.TextsOf // returns which texts of a selected task are read
	Looked int                                   // the number of tasks that the walk has read
	Sample func(id int64) bool                   // whether a task is read at all; nil reads all

	// ByTime makes a query for a group find the tasks by the times at which they entered their states, as queries
	// without a group do. Then Since is cheap, but each task of another group costs a look.
	ByTime bool

	ctx    context.Context
	store  Store
	atOnce int
	begun  time.Time
	at     position
	ended  bool
	bytes  int64
}

// New returns a walk through the tasks of a query. It begins after the cursor, or with the first task if the cursor is
// "". If the query or the cursor is invalid, the error is a *[task.QueryError].
func New(ctx context.Context, s Store, q task.Query, after string) (*Walk, error) {
	q, err := prepare(q)
	if err != nil {
		return nil, err
	}
	if q.CallbackFailed {
		if err := selectFailed(ctx, s, &q); err != nil {
			return nil, err
		}
	}
	at, err := positionOf(&q, after)
	rounds := SummaryRounds
	if q.Failure != "" { // LastFailure may find the failure in an earlier round
		rounds = FailureRounds
	}
	return &Walk{
		ctx: ctx, store: s, Query: q, Bounds: PageBounds, Rounds: rounds,
		Texts:  func(t *task.Task) []redisstate.TextsOf { return texts(&q, t) },
		atOnce: mostAtOnce, begun: time.Now(), at: at, ended: q.CallbackFailed && len(q.IDs) == 0,
	}, err
}

// mostFailed is the largest number of failed callbacks that a query selects.
const mostFailed = 10_000

// selectFailed sets the ids of a query to those of the tasks whose callbacks have failed for good.
func selectFailed(ctx context.Context, s Store, q *task.Query) error {
	failed, err := s.FailedCallbacks(ctx, mostFailed)
	if err != nil {
		return err
	}
	given := slices.Sorted(slices.Values(q.IDs)) // there may be 100,000 of both
	q.IDs = nil
	for _, f := range failed {
		if _, is := slices.BinarySearch(given, f.Task); is || len(given) == 0 {
			q.IDs = append(q.IDs, f.Task)
		}
	}
	return nil
}

// Add makes the walk read the texts that the function texts names, in addition to the texts that the query searches.
func (f *Walk) Add(texts func(*task.Task) []redisstate.TextsOf) {
	f.Texts = func(t *task.Task) []redisstate.TextsOf { return slices.Concat(texts(t), Searched(&f.Query, t)) }
}

// Page returns the next selected tasks. The parameter most is the maximum number of tasks.
func (f *Walk) Page(most int) (Page, error) {
	var page Page
	f.atOnce = min(max(most, leastAtOnce), mostAtOnce)
	err := f.Each(func(t *task.Task) bool {
		page.Tasks = append(page.Tasks, t)
		return len(page.Tasks) < most
	})
	page.Looked, page.Next = f.Looked, f.Next()
	return page, err
}

// Next returns the cursor after the last task that the walk has examined, or "" at the end.
func (f *Walk) Next() string {
	if f.ended {
		return ""
	}
	return f.at.String()
}

// Each calls the function take with each selected task, until take returns false or the walk reaches a bound.
func (f *Walk) Each(take func(*task.Task) bool) error {
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
				if err := pool.Take(f.ctx, 0); err != nil { // what take does with a task may need long
					return err
				}
				more = take(t)
			}
			f.at.place = &places[passed]
			f.Looked++
		}
		f.ended = last && passed == len(places)
		f.atOnce = min(2*f.atOnce, mostAtOnce)
		if len(tasks) < len(places) { // the texts are long, and the other tasks will be read again
			f.atOnce = len(tasks)
		}
	}
	return nil
}

func (f *Walk) tired() bool {
	return f.Looked >= f.Bounds.Tasks || f.bytes >= f.Bounds.Bytes || time.Since(f.begun) >= f.Bounds.Time
}

// places returns the places of the next tasks that the query may select.
func (f *Walk) places() (places []redisstate.ListEntry, last bool, err error) {
	if len(f.Query.IDs) > 0 {
		places, last = f.at.placesAmong(f.Query.IDs, f.atOnce)
		return places, last, nil
	}
	group := f.Query.Group
	if f.ByTime {
		group = ""
	}
	return f.store.Find(f.ctx, redisstate.ListQuery{
		States: f.Query.States, Group: group, After: task.At(f.Query.Since), Before: task.At(f.Query.Before),
		OldestFirst: f.Query.Order != task.NewestFirst, Behind: f.at.place,
	}, f.atOnce)
}

// look reads the tasks at the given places. If a task is not selected, its element is nil. If the texts exceed the
// bound, look returns fewer tasks than places.
func (f *Walk) look(places []redisstate.ListEntry) ([]*task.Task, error) {
	var ids []int64
	var at []int // the place of each id
	for i, p := range places {
		if id, ok := p.ID(); ok && (f.Sample == nil || f.Sample(id)) {
			ids, at = append(ids, id), append(at, i)
		}
	}
	tasks := make([]*task.Task, len(places))
	if len(ids) == 0 {
		return tasks, nil
	}
	err := pool.Part(f.ctx, func(ctx context.Context) (kept int64, err error) {
		stored, err := f.read(ctx, ids)
		if err != nil {
			return 0, err
		}
		for i, x := range stored {
			if err := pool.Take(ctx, taskBytes); err != nil { // a pattern needs long
				return 0, err
			}
			f.bytes += int64(x.Bytes)
			if x.Task != nil && textsMatch(&f.Query, x.Task) {
				tasks[at[i]] = x.Task
				kept += int64(x.Bytes) + taskBytes
			}
		}
		if len(stored) < len(ids) {
			tasks = tasks[:at[len(stored)]]
		}
		return kept, nil
	})
	return tasks, err
}

// taskBytes is about what a task needs in memory, besides its texts.
const taskBytes = 2 << 10

// read reads what the query needs of tasks.
func (f *Walk) read(ctx context.Context, ids []int64) ([]redisstate.Stored, error) {
	return f.store.Read(ctx, ids, redisstate.Want{
		Fields: redisstate.Facts, Rounds: redisstate.LastRounds(f.Rounds),
		KeepHead: f.head, Keep: func(t *task.Task) bool { return f.head(t) && facts(&f.Query, t) },
		Texts: f.Texts, MaxBytes: max(1, int(f.Bounds.Bytes-f.bytes)),
	})
}

func (f *Walk) head(t *task.Task) bool { return head(&f.Query, t) }
