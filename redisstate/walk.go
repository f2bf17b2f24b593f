package redisstate

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

// A WalkPage says where a walk through all tasks goes on; the zero WalkPage is its beginning.
type WalkPage struct {
	phase  walkPhase
	last   int64  // the last id when the walk began: it ends, however many are opened meanwhile
	id     int64  // counting: the tasks up to here have been looked at
	list   int    // listing: the list, by its place in tdf.Lists
	cursor uint64 // within the keys, or within the list
}

// A walk goes through the ids that the counter has given out, or, where nearly all of these are gone, through the
// keys that there are; and then through the lists.
type walkPhase int

const (
	beginning walkPhase = iota
	counting
	scanning
	listing
)

// Walk returns the ids of the next page of all tasks there are: those that the counter has
// given out, and those that any list holds. Some may be gone, and some come more than once. Done says
// that the page was the last one. Where the user may not SCAN, tasks in no list are left out, and the log says so once.
func (s *Store) Walk(ctx context.Context, from WalkPage, most int64) (ids []int64, next WalkPage, done bool, err error) {
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

// So many ids are counted through for each task that there is, and so many in any case. Beyond that it costs less
// to go through all keys of the Redis.
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
	if p.id = to; to == p.last {
		p.phase = listing
	}
	return ids, p
}

func (s *Store) walkKeys(ctx context.Context, from WalkPage, most int64) ([]int64, WalkPage, error) {
	prefix := s.keys.taskPrefix()
	var found []string
	err := s.untilAnswered(ctx, func(ctx context.Context) (err error) {
		found, from.cursor, err = s.rdb.Scan(ctx, from.cursor, literally.Replace(prefix)+"*", most).Result()
		return err
	})
	if lacksRights(err) {
		s.scanRefused.Do(func() { s.log.Warn("tasks that are in no list are left out: redis refuses SCAN", "error", err) })
		return nil, WalkPage{phase: listing}, nil
	}
	if err != nil {
		return nil, from, fmt.Errorf("walking through the tasks: redis: %w", err)
	}
	for i := range found {
		found[i] = strings.TrimPrefix(found[i], prefix)
	}
	if from.cursor == 0 {
		from.phase = listing
	}
	return idsOf(found), from, nil
}

// literally has characters stand for themselves in a pattern.
var literally = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

func (s *Store) walkLists(ctx context.Context, from WalkPage, most int64) ([]int64, WalkPage, bool, error) {
	lists := append(s.listKeys(), s.keys.Due())
	var scanned []string
	var cursor uint64
	err := s.untilAnswered(ctx, func(ctx context.Context) (err error) {
		scanned, cursor, err = s.rdb.ZScan(ctx, lists[from.list], from.cursor, "", most).Result()
		return err
	})
	if err != nil {
		return nil, from, false, fmt.Errorf("walking through the lists: redis: %w", err)
	}
	var members []string
	for i := 0; i < len(scanned); i += 2 { // each is followed by its score
		members = append(members, scanned[i])
	}
	from.cursor = cursor
	if cursor == 0 {
		from.list++
	}
	if from.list == len(lists) {
		return idsOf(members), WalkPage{}, true, nil
	}
	return idsOf(members), from, false, nil
}

func (s *Store) listKeys() []string {
	var keys []string
	for _, list := range tdf.Lists {
		keys = append(keys, s.keys.List(list))
	}
	return keys
}

// LastID returns the last id that was given out; 0: none was.
func (s *Store) LastID(ctx context.Context) (int64, error) {
	var last int64
	err := s.untilAnswered(ctx, func(ctx context.Context) (err error) {
		last, err = s.rdb.Get(ctx, s.keys.taskID()).Int64()
		if err == redis.Nil {
			err = nil
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("reading the last id: redis: %w", err)
	}
	return last, nil
}

// IDs yields the ids of all tasks there are in their order, each once, and among them ids of tasks that are gone.
// A page has up to most of them. A task that is opened meanwhile may come at the end. What the counter does not
// tell is kept in memory: 8 bytes a task.
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
		for ids := range slices.Chunk(unique(rest), int(most)) {
			if !yield(ids, nil) {
				return
			}
		}
	}
}
