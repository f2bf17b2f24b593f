package redisstate

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// A WalkPage is the place where a walk through all tasks continues. The walk begins with the zero WalkPage.
type WalkPage struct {
	phase  walkPhase
	last   int64  // the last id that was given out before the walk began; the phase counting ends there
	id     int64  // in the phase counting: the last id of the previous page
	list   int    // in the phase listing: the index in task.Lists of the list that the walk has reached
	cursor uint64 // the cursor of the scan through the keys or through the list
}

// A walk has two parts. First, it goes through all numbers from 1 to the last id that was given out. If nearly all
// tasks with these ids were removed, it scans the keys of Redis instead. In the second part, it goes through the lists,
// because they may contain other ids.
type walkPhase int

const (
	beginning walkPhase = iota
	counting
	scanning
	listing
)

// Walk returns the next page of a walk through the ids of all tasks. Some of the ids may belong to no task, because the
// task was removed. An id may come more than once. If the page was the last one, done is true. If Redis's user lacks
// the right to SCAN, Walk may leave out tasks that are in no list, and logs this once.
func (s *Store) Walk(ctx context.Context, from WalkPage, most int64) (ids []int64, next WalkPage, done bool,
	err error,
) {
	if from.phase == beginning {
		if from, err = s.walkFrom(ctx); err != nil {
			return nil, WalkPage{}, false, err
		}
	}
	switch from.phase {
	case counting:
		ids, next = from.count(most)
		return ids, next, false, nil
	case scanning:
		ids, next, err = s.walkKeys(ctx, from, most)
		return ids, next, false, err
	}
	return s.walkLists(ctx, from, most)
}

// A walk computes the limit countedForEach * (number of tasks) + countedAnyway. If the last id is not above the limit,
// the walk goes through all numbers from 1 to the last id. Otherwise it scans all keys of Redis, because the scan costs
// less.
const (
	countedForEach = 10
	countedAnyway  = 100_000
)

func (s *Store) walkFrom(ctx context.Context) (WalkPage, error) {
	last, err := s.LastID(ctx)
	if err != nil || last <= 0 {
		return WalkPage{phase: listing}, err
	}
	counts, err := s.Counts(ctx)
	if last > countedForEach*counts.Total()+countedAnyway {
		return WalkPage{phase: scanning, last: last}, err
	}
	return WalkPage{phase: counting, last: last}, err
}

func (p WalkPage) count(most int64) (ids []int64, next WalkPage) {
	to := min(p.id+most, p.last)
	for id := p.id + 1; id <= to; id++ {
		ids = append(ids, id)
	}
	p.id = to
	if to == p.last {
		p.phase = listing
	}
	return ids, p
}

func (s *Store) walkKeys(ctx context.Context, from WalkPage, most int64) ([]int64, WalkPage, error) {
	found, next, err := s.Conn.Scan(ctx, "walk through all tasks", func(r redis.Cmdable) *redis.ScanCmd {
		return r.Scan(ctx, from.cursor, patternEscaper.Replace(s.Keys.Key(""))+"[td]*", most)
	})
	if s.Conn.MayNotScan(err) {
		return nil, WalkPage{phase: listing}, nil
	}
	if err != nil {
		return nil, from, err
	}
	for i := range found {
		found[i] = s.idInKey(found[i])
	}
	from.cursor = next
	if next == 0 {
		from.phase = listing
	}
	return conn.IDsOf(found), from, nil
}

// idInKey returns the id in the key of a task, or in the key of the tasks that wait for a task. It returns other keys
// as they are.
func (s *Store) idInKey(key string) string {
	if waiting, is := strings.CutPrefix(key, s.Keys.DependentsPrefix()); is {
		id, _, _ := strings.Cut(waiting, ":")
		return id
	}
	return strings.TrimPrefix(key, s.Keys.TaskPrefix())
}

// patternEscaper escapes the special characters in a text, so that a pattern matches the text itself.
var patternEscaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

func (s *Store) walkLists(ctx context.Context, from WalkPage, most int64) ([]int64, WalkPage, bool, error) {
	lists := append(s.listKeys(), s.Keys.Due())
	scanned, next, err := s.Conn.Scan(ctx, "walk through the lists", func(r redis.Cmdable) *redis.ScanCmd {
		return r.ZScan(ctx, lists[from.list], from.cursor, "", most)
	})
	if err != nil {
		return nil, from, false, err
	}
	ids := conn.IDsOf(conn.EverySecond(scanned))
	from.cursor = next
	if next == 0 {
		from.list++
	}
	if from.list == len(lists) {
		return ids, WalkPage{}, true, nil
	}
	return ids, from, false, nil
}

func (s *Store) listKeys() []string {
	var keys []string
	for _, list := range rules.Lists {
		keys = append(keys, s.Keys.List(list))
	}
	return keys
}

// LastID returns the last id that was given out, or 0 if no task was ever opened.
func (s *Store) LastID(ctx context.Context) (int64, error) {
	const doing = "read the last id"
	last, err := conn.Ask(ctx, s.Conn, doing, func(r redis.Cmdable) *redis.StringCmd {
		return r.Get(ctx, s.Keys.TaskID())
	})
	if err != nil || last == "" {
		return 0, err
	}
	id, err := strconv.ParseInt(last, 10, 64)
	return id, conn.Failed(doing, err)
}

// IDs yields the ids of all tasks in ascending order, each id once, in pages of at most the given number of ids. Some
// of the ids may belong to no task, because the task was removed. A task that is opened meanwhile may come at the end.
//
// A walk first counts through the numbers up to the last id, unless nearly all of these tasks were removed. Later it
// may find more ids in the keys or the lists. Each of these ids takes 8 bytes of memory until the walk ends.
func (s *Store) IDs(ctx context.Context, most int64) iter.Seq2[[]int64, error] {
	return func(yield func([]int64, error) bool) {
		var rest []int64
		var page WalkPage
		for done := false; !done; {
			counted := page.id
			var ids []int64
			var err error
			if ids, page, done, err = s.Walk(ctx, page, most); err != nil {
				yield(nil, err)
				return
			}
			if page.id > counted {
				if !yield(ids, nil) {
					return
				}
				continue
			}
			rest = append(rest, slices.DeleteFunc(ids, func(id int64) bool { return id <= counted })...)
		}
		for ids := range slices.Chunk(conn.Unique(rest), int(most)) {
			if !yield(ids, nil) {
				return
			}
		}
	}
}

// A FuturePage is the place where a walk through the tasks with a time in the future continues. The walk begins with
// the zero FuturePage.
type FuturePage struct {
	phase  int        // 0 for the list of the open tasks, 1 for the open tasks with a place, 2 for `due`
	behind *ListEntry // the entry after which the walk continues; nil starts at the current time
}

// FutureTasks returns the next page of a walk through the tasks whose time lies in the future. In the open lists, this
// is the time from which a task may be claimed. In `due`, it is the time at which the server must settle the task. The
// walk follows the order of these times, first in the open lists and then in `due`. A page has at most the given number
// of ids. If the page was the last one, done is true. If the clock was set back, some of these times are wrong.
// [Store.Examine] finds the tasks with a wrong time.
func (s *Store) FutureTasks(ctx context.Context, from FuturePage, now task.Time, most int) (
	ids []int64, next FuturePage, done bool, err error,
) {
	keys := []string{s.Keys.List(task.Open), s.Keys.List(rules.Placed), s.Keys.Due()}
	key, behind := keys[from.phase], ListEntry{Order: float64(now)}
	if from.behind != nil && from.behind.Order > behind.Order {
		behind = *from.behind
	}
	args := []any{"oldest", most, score(behind.Order), behind.Member, ""}
	reply, err := s.Conn.Run(ctx, "read tasks with a time in the future", lua.Find, []string{key}, args,
		conn.Tuple(conn.ManyTexts))
	if err != nil {
		return nil, from, false, err
	}
	var all ListQuery
	for _, page := range conn.List(reply) {
		places := all.places(task.Open, conn.List(page))
		for _, p := range places {
			if id, ok := p.ID(); ok {
				ids = append(ids, id)
			}
			from.behind = &p
		}
		if len(places) < most {
			done = from.phase == len(keys)-1
			from = FuturePage{phase: min(from.phase+1, len(keys)-1)}
		}
	}
	return ids, from, done, nil
}
