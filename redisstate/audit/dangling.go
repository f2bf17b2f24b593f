package audit

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/index"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// An IndexPage is the place where a walk through the indexes of all groups and queues continues. The walk begins with
// the zero IndexPage.
type IndexPage struct {
	keys    uint64          // the cursor of SCAN over the keys of Redis; 0 at the beginning and at the end
	begun   bool            // the walk through the keys has begun
	indexes []index.Set     // the indexes that the walk has not finished
	index   uint64          // the cursor in the first of them
	found   []index.Set     // the indexes that the last page has found; see [Auditor.KeepIndexNames]
	named   map[bool]string // the names of a group (false) and of a queue (true) after which KeepIndexNames continues
}

// Limits for one page of the walk.
const (
	keysScanned    = 1000
	indexesScanned = 20 // the largest number of indexes that one page reads from
)

// DanglingIDs examines the next page of ids in the indexes of groups and queues. The page has about the given number of
// ids. DanglingIDs returns findings about ids that have no task, for example because the task's hash was deleted by
// hand. If the page was the last one, done is true.
func (a Auditor) DanglingIDs(ctx context.Context, from IndexPage, most int64) (dangling []Finding, next IndexPage,
	done bool, err error,
) {
	from.found = nil
	if len(from.indexes) == 0 && (!from.begun || from.keys > 0) {
		from.begun = true
		if from.indexes, from.keys, err = a.scanIndexes(ctx, from.keys); err != nil {
			return nil, from, false, err
		}
		from.found = from.indexes
	}
	var seen int64
	for range indexesScanned {
		if len(from.indexes) == 0 || seen >= most {
			break
		}
		first := from.indexes[0]
		members, cursor, err := a.scanIndex(ctx, first, from.index, most)
		if err != nil {
			return nil, from, false, err
		}
		found, err := a.danglingOf(ctx, first, members)
		if err != nil {
			return nil, from, false, err
		}
		dangling = append(dangling, found...)
		seen += int64(len(members))
		from.index = cursor
		if cursor == 0 {
			from.indexes = from.indexes[1:]
		}
	}
	if done = len(from.indexes) == 0 && from.keys == 0; done {
		from = IndexPage{found: from.found, named: from.named}
	}
	return dangling, from, done, nil
}

func (a Auditor) scanIndexes(ctx context.Context, from uint64) (indexes []index.Set, next uint64, err error) {
	pattern := a.store.Keys.Pattern("[gq][ru][oe][ue][pe]:*") // group:* and queue:*
	found, next, err := a.store.Conn.Scan(ctx, "find groups and queues", func(r redis.Cmdable) *redis.ScanCmd {
		return r.ScanType(ctx, from, pattern, keysScanned, "zset")
	})
	if a.store.Conn.MayNotScan(err) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, from, err
	}
	for _, key := range found {
		if group, is := strings.CutPrefix(key, a.store.Keys.GroupPrefix()); is {
			indexes = append(indexes, index.Set{Name: group})
		} else if queue, is := strings.CutPrefix(key, a.store.Keys.QueuePrefix()); is {
			indexes = append(indexes, index.Set{OfQueue: true, Name: queue})
		}
	}
	return indexes, next, nil
}

// scanIndex returns the next ids in an index. It skips ids with an invalid score. If a score is invalid,
// another program has added the member, or the key belongs to another namespace. The name of that other namespace
// begins with the name of this namespace, and ":group" or ":queue".
func (a Auditor) scanIndex(ctx context.Context, of index.Set, from uint64, most int64) (ids []int64, next uint64,
	err error,
) {
	key := of.Key(a.store.Keys)
	scanned, next, err := a.store.Conn.Scan(ctx, "read the index "+strconv.Quote(key),
		func(r redis.Cmdable) *redis.ScanCmd { return r.ZScan(ctx, key, from, "", most) })
	if err != nil && !conn.IsWrongType(err) { // the key may have changed its type since the scan
		return nil, from, err
	}
	for i := 0; i+1 < len(scanned); i += 2 { // a score follows each member
		score, _ := strconv.ParseFloat(scanned[i+1], 64)
		for _, id := range conn.IDsOf(scanned[i : i+1]) {
			if index.IsGroupScore(score, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids, next, nil
}

// danglingOf returns findings about the ids that have no task. It reads the task first, and then the index again. A
// task leaves the index at the same moment as its hash is removed. So if the hash is missing and the id is still in the
// index, the id has no task.
func (a Auditor) danglingOf(ctx context.Context, of index.Set, ids []int64) ([]Finding, error) {
	states, places := make([]*redis.StringCmd, len(ids)), make([]*redis.FloatCmd, len(ids))
	key := of.Key(a.store.Keys)
	err := a.store.Conn.Pipeline(ctx, "look up the tasks of the index "+strconv.Quote(key), func(p redis.Pipeliner) {
		for i, id := range ids {
			states[i] = p.HGet(ctx, a.store.Keys.Task(id), "state")
			places[i] = p.ZScore(ctx, key, strconv.FormatInt(id, 10))
		}
	})
	if err != nil {
		return nil, err
	}
	var dangling []Finding
	for i, id := range ids {
		if states[i].Err() == nil || places[i].Err() != nil {
			continue
		}
		at := rules.Placement{ID: id, Group: of.Name}
		if of.OfQueue {
			at = rules.Placement{ID: id, Queue: of.Name}
		}
		m, _ := at.Repair(0)
		dangling = append(dangling, Finding{ID: id, Problem: m.Note, Repair: m, Certain: true})
	}
	return dangling, nil
}

// namesChecked is the number of names that one call of KeepIndexNames checks in each set.
const namesChecked = 500

// KeepIndexNames adds the groups and queues that a page of [Auditor.DanglingIDs] has found to the sets of their names.
// It also checks some names of the sets, and removes those without tasks. It returns the page with which the walk
// continues.
func (a Auditor) KeepIndexNames(ctx context.Context, page IndexPage) (IndexPage, error) {
	named := map[bool]string{}
	for ofQueue, set := range map[bool]string{false: a.store.Keys.GroupNames(), true: a.store.Keys.QueueNames()} {
		var found []string
		for _, x := range page.found {
			if x.OfQueue == ofQueue {
				found = append(found, x.Name)
			}
		}
		e := &conn.Args{}
		e.Add(index.Set{OfQueue: ofQueue}.Key(a.store.Keys), page.named[ofQueue])
		e.Count(namesChecked)
		e.Strings(found)
		reply, err := a.store.Conn.Run(ctx, "check the names of groups and queues", lua.IndexNames, []string{set},
			e.All, conn.IsText)
		if err != nil {
			return page, err
		}
		named[ofQueue] = conn.Text(reply)
	}
	page.named, page.found = named, nil
	return page, nil
}
