package index

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/keys"
)

// The index of a group is a sorted set of its tasks, and so is the index of a queue. The score of a task is the code of
// its state times GroupIDs, plus its id, so that the tasks are ordered by state, and then by id.

// GroupIDs is the number of scores that each state has in an index, one for each id.
const GroupIDs = 1 << 40

// MaxID is the highest id that an index can hold.
const MaxID int64 = GroupIDs - 1

// GroupCode returns the code of a state: its number in the indexes and in the scripts. It is at least 1. For
// [task.None], it is 0.
func GroupCode(s task.State) int { return slices.Index(rules.Lists, s) + 1 }

// UnfinishedCodes returns the codes of the states in which a group's task keeps the group from being complete.
func UnfinishedCodes() (codes []string) {
	for _, list := range rules.Lists {
		if !list.Finished() {
			codes = append(codes, strconv.Itoa(GroupCode(list)))
		}
	}
	return codes
}

// GroupScore returns the score of a task in its indexes.
func GroupScore(s task.State, id int64) float64 { return float64(int64(GroupCode(s))*GroupIDs + id) }

// GroupRange returns the lowest and the highest score of a state's tasks in an index.
func GroupRange(s task.State) (first, last string) {
	from := int64(GroupCode(s)) * GroupIDs
	return strconv.FormatInt(from, 10), strconv.FormatInt(from+MaxID, 10)
}

// stateRanges has the range of each state of task.States. It exists because a scrape of the metrics needs each of them
// for hundreds of queues.
var stateRanges = func() (all [][2]string) {
	for _, state := range task.States {
		first, last := GroupRange(state)
		all = append(all, [2]string{first, last})
	}
	return all
}()

// IsGroupScore reports whether a task with this id can have this score in an index.
func IsGroupScore(score float64, id int64) bool {
	return id >= 0 && id <= MaxID && slices.ContainsFunc(rules.Lists, func(s task.State) bool {
		return GroupScore(s, id) == score
	})
}

// A Set names the index of a group or of a queue.
type Set struct {
	OfQueue bool
	Name    string
}

// Key returns the key of the index.
func (x Set) Key(k keys.Names) string {
	if x.OfQueue {
		return k.Queue(x.Name)
	}
	return k.Group(x.Name)
}

// Pair returns the names of a task's indexes, in the notation of the scripts: its group, and behind a line feed
// its queue, if it has one.
func Pair(group, queue string) string {
	if queue = cmp.Or(queue, class.DefaultQueue); queue == class.DefaultQueue {
		return group
	}
	return group + "\n" + queue
}

// Of returns the indexes that should have a task. It reads a group with a line feed, which is invalid, as the
// scripts do.
func Of(t *task.Task) (all []Set) {
	group, queue, has := strings.Cut(Pair(t.Group, t.Queue), "\n")
	if group != "" {
		all = append(all, Set{Name: group})
	}
	if has {
		all = append(all, Set{OfQueue: true, Name: queue})
	}
	return all
}

// ReadCounts has the replies with the numbers of tasks of one index, by state.
type ReadCounts []*redis.IntCmd

// CountIn asks a pipeline for the number of tasks of each state in the index with this key.
func CountIn(ctx context.Context, p redis.Pipeliner, key string) (counts ReadCounts) {
	for _, of := range stateRanges {
		counts = append(counts, p.ZCount(ctx, key, of[0], of[1]))
	}
	return counts
}

func (r ReadCounts) Counts() task.Counts {
	counts := task.Counts{}
	for i, state := range task.States {
		counts[state] = r[i].Val()
	}
	return counts
}

// NamesAfter returns the first names of a set of names after a name, in the order of their bytes: at most the given
// number of names, and only those that begin with the prefix. The set has the names of all groups or of all queues. Its
// scores are all 0, so that Redis orders it by name. The scripts that open the first task of a group or queue, or
// remove the last one, change the set, too.
func (s *Names) NamesAfter(ctx context.Context, what, set, prefix, after string, most int) ([]string, error) {
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
