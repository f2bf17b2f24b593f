// Package walk goes through the ids of all tasks.
package walk

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A Page is the place where a walk through all tasks continues. The walk begins with the zero Page.
type Page struct {
	phase  phase
	last   int64  // the last id that was given out before the walk began; the phase counting ends there
	id     int64  // in the phase counting: the last id of the previous page
	list   int    // in the phase listing: the index in Keys.Lists of the list that the walk has reached
	cursor uint64 // the cursor of the scan through the keys or through the list
}

// A walk has two parts. First, it goes through all numbers from 1 to the last id that was given out. If nearly all
// tasks with these ids were removed, it scans the keys of Redis instead. In the second part, it goes through the lists,
// because they may contain other ids.
type phase int

const (
	beginning phase = iota
	counting
	scanning
	listing
)

// Next returns the next page of a walk through the ids of all tasks. Some of the ids may belong to no task, because the
// task was removed. An id may come more than once. If the page was the last one, done is true. If Redis's user lacks
// the right to SCAN, Next may leave out tasks that are in no list, and logs this once.
func Next(ctx context.Context, c *conn.Conn, from Page, most int64) (
	ids []int64, next Page, done bool, err error,
) {
	if from.phase == beginning {
		if from, err = begin(ctx, c); err != nil {
			return nil, Page{}, false, err
		}
	}
	switch from.phase {
	case counting:
		ids, next = from.count(most)
		return ids, next, false, nil
	case scanning:
		ids, next, err = keysPage(ctx, c, from, most)
		return ids, next, false, err
	}
	return listsPage(ctx, c, from, most)
}

// A walk computes the limit countedForEach * (number of tasks) + countedAnyway. If the last id is not above the limit,
// the walk goes through all numbers from 1 to the last id. Otherwise it scans all keys of Redis, because the scan costs
// less.
const (
	countedForEach = 10
	countedAnyway  = 100_000
)

func begin(ctx context.Context, c *conn.Conn) (Page, error) {
	last, err := LastID(ctx, c)
	if err != nil || last <= 0 {
		return Page{phase: listing}, err
	}
	sizes, err := conn.AskEach(ctx, c, "count tasks", c.Keys.Lists(),
		func(p redis.Pipeliner, key string) *redis.IntCmd { return p.ZCard(ctx, key) })
	limit := int64(countedAnyway)
	for _, n := range sizes {
		limit += countedForEach * n.Val()
	}
	if last > limit {
		return Page{phase: scanning, last: last}, err
	}
	return Page{phase: counting, last: last}, err
}

func (p Page) count(most int64) (ids []int64, next Page) {
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

func keysPage(ctx context.Context, c *conn.Conn, from Page, most int64) ([]int64, Page, error) {
	found, next, err := c.Scan(ctx, "walk through all tasks", func(r redis.Cmdable) *redis.ScanCmd {
		return r.Scan(ctx, from.cursor, c.Keys.Pattern("[td]*"), most)
	})
	if c.MayNotScan(err) {
		return nil, Page{phase: listing}, nil
	}
	if err != nil {
		return nil, from, err
	}
	for i := range found {
		found[i] = idInKey(c, found[i])
	}
	from.cursor = next
	if next == 0 {
		from.phase = listing
	}
	return conn.IDsOf(found), from, nil
}

// idInKey returns the id in the key of a task, or in the key of the tasks that wait for a task. It returns other keys
// as they are.
func idInKey(c *conn.Conn, key string) string {
	if waiting, is := strings.CutPrefix(key, c.Keys.DependentsPrefix()); is {
		id, _, _ := strings.Cut(waiting, ":")
		return id
	}
	return strings.TrimPrefix(key, c.Keys.TaskPrefix())
}

func listsPage(ctx context.Context, c *conn.Conn, from Page, most int64) ([]int64, Page, bool, error) {
	lists := append(c.Keys.Lists(), c.Keys.Due())
	scanned, next, err := c.Scan(ctx, "walk through the lists", func(r redis.Cmdable) *redis.ScanCmd {
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
		return ids, Page{}, true, nil
	}
	return ids, from, false, nil
}

// LastID returns the last id that was given out, or 0 if no task was ever opened.
func LastID(ctx context.Context, c *conn.Conn) (int64, error) {
	const doing = "read the last id"
	last, err := conn.Ask(ctx, c, doing, func(r redis.Cmdable) *redis.StringCmd {
		return r.Get(ctx, c.Keys.TaskID())
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
func IDs(ctx context.Context, c *conn.Conn, most int64) iter.Seq2[[]int64, error] {
	return func(yield func([]int64, error) bool) {
		var rest []int64
		var page Page
		for done := false; !done; {
			counted := page.id
			var ids []int64
			var err error
			if ids, page, done, err = Next(ctx, c, page, most); err != nil {
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
