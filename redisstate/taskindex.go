package redisstate

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/keys"
)

// The index of a group is a sorted set of its tasks, and so is the index of a queue. The score of a task is the code of
// its state times groupIDs, plus its id, so that the tasks are ordered by state, and then by id.

// groupIDs is the number of scores that each state has in an index, one for each id.
const groupIDs = 1 << 40

// MaxID is the highest id that an index can hold.
const MaxID int64 = groupIDs - 1

// groupCode returns the code of a state: its number in the indexes and in the scripts. It is at least 1. For
// [tdf.None], it is 0.
func groupCode(s tdf.State) int { return slices.Index(tdf.Lists, s) + 1 }

// groupScore returns the score of a task in its indexes.
func groupScore(s tdf.State, id int64) float64 { return float64(int64(groupCode(s))*groupIDs + id) }

// groupRange returns the lowest and the highest score of a state's tasks in an index.
func groupRange(s tdf.State) (first, last string) {
	from := int64(groupCode(s)) * groupIDs
	return strconv.FormatInt(from, 10), strconv.FormatInt(from+MaxID, 10)
}

// stateRanges has the range of each state of tdf.States. It exists because a scrape of the metrics needs each of them
// for hundreds of queues.
var stateRanges = func() (all [][2]string) {
	for _, state := range tdf.States {
		first, last := groupRange(state)
		all = append(all, [2]string{first, last})
	}
	return all
}()

// isGroupScore reports whether a task with this id can have this score in an index.
func isGroupScore(score float64, id int64) bool {
	return id >= 0 && id <= MaxID && slices.ContainsFunc(tdf.Lists, func(s tdf.State) bool {
		return groupScore(s, id) == score
	})
}

// A taskIndex names the index of a group or of a queue.
type taskIndex struct {
	ofQueue bool
	name    string
}

func (x taskIndex) key(k keys.Names) string {
	if x.ofQueue {
		return k.Queue(x.name)
	}
	return k.Group(x.name)
}

// indexNames returns the names of a task's indexes, in the notation of the scripts: its group, and behind a line feed
// its queue, if it has one.
func indexNames(group, queue string) string {
	if queue = cmp.Or(queue, tdf.DefaultQueue); queue == tdf.DefaultQueue {
		return group
	}
	return group + "\n" + queue
}

// indexesOf returns the indexes that should have a task. It reads a group with a line feed, which is invalid, as the
// scripts do.
func indexesOf(t *tdf.Task) (all []taskIndex) {
	group, queue, has := strings.Cut(indexNames(t.Group, t.Queue), "\n")
	if group != "" {
		all = append(all, taskIndex{false, group})
	}
	if has {
		all = append(all, taskIndex{true, queue})
	}
	return all
}

// indexScores returns each task's scores in its indexes.
func (s *Store) indexScores(ctx context.Context, sightings []tdf.Placement) ([][]*redis.FloatCmd, error) {
	scores := make([][]*redis.FloatCmd, len(sightings))
	err := s.Pipeline(ctx, "look up tasks in their groups and queues", func(p redis.Pipeliner) {
		for i, x := range sightings {
			if x.Task == nil {
				continue
			}
			for _, of := range indexesOf(x.Task) {
				scores[i] = append(scores[i], p.ZScore(ctx, of.key(s.Keys), strconv.FormatInt(x.ID, 10)))
			}
		}
	})
	return scores, err
}

// A readCounts has the replies with the numbers of tasks of one index, by state.
type readCounts []*redis.IntCmd

// countIn asks a pipeline for the number of tasks of each state in an index.
func (x taskIndex) countIn(ctx context.Context, p redis.Pipeliner, k keys.Names) (counts readCounts) {
	key := x.key(k)
	for _, of := range stateRanges {
		counts = append(counts, p.ZCount(ctx, key, of[0], of[1]))
	}
	return counts
}

func (r readCounts) counts() tdf.Counts {
	counts := tdf.Counts{}
	for i, state := range tdf.States {
		counts[state] = r[i].Val()
	}
	return counts
}

// namesAfter returns the first names of a set of names after a name, in the order of their bytes: at most the given
// number of names, and only those that begin with the prefix. The set has the names of all groups or of all queues. Its
// scores are all 0, so that Redis orders it by name. The scripts that open the first task of a group or queue, or
// remove the last one, change the set, too.
func (s *Store) namesAfter(ctx context.Context, what, set, prefix, after string, most int) ([]string, error) {
	from, to := "["+prefix, afterAll(prefix)
	if after >= prefix && after != "" {
		from = "(" + after
	}
	return conn.Ask(ctx, s.Conn, what, func(r redis.Cmdable) *redis.StringSliceCmd {
		return r.ZRangeByLex(ctx, set, &redis.ZRangeBy{Min: from, Max: to, Count: int64(most)})
	})
}

// afterAll returns the end, for ZRANGEBYLEX, of all names that begin with a prefix.
func afterAll(prefix string) string {
	last := prefix
	for strings.HasSuffix(last, "\xff") {
		last = last[:len(last)-1]
	}
	if last == "" {
		return "+"
	}
	return "(" + last[:len(last)-1] + string([]byte{last[len(last)-1] + 1})
}
