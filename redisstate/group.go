package redisstate

import (
	"slices"
	"strconv"

	"github.com/tdf-framework/tdf"
)

// The index of a group is a sorted set of its tasks. The score of a task is the code of its state times groupIDs, plus its
// id (docs/redis.md).

// groupIDs is the number of scores that each state has in the index of a group, one for each id.
const groupIDs = 1 << 40

// MaxID is the highest id that the index of a group can hold.
const MaxID int64 = groupIDs - 1

// groupCode returns the code of a state: its number in the indexes of groups and in the scripts. It is at least 1. For
// an unknown state, it is 0.
func groupCode(s tdf.State) int { return slices.Index(tdf.Lists, s) + 1 }

// groupScore returns the score of a task in the index of its group.
func groupScore(s tdf.State, id int64) float64 { return float64(int64(groupCode(s))*groupIDs + id) }

// groupRange returns the lowest and the highest score of a state's tasks in the index of a group.
func groupRange(s tdf.State) (first, last string) {
	from := int64(groupCode(s)) * groupIDs
	return strconv.FormatInt(from, 10), strconv.FormatInt(from+MaxID, 10)
}

// isGroupScore reports whether a task with this id can have this score in the index of a group.
func isGroupScore(score float64, id int64) bool {
	return id >= 0 && id <= MaxID && slices.ContainsFunc(tdf.Lists, func(s tdf.State) bool { return groupScore(s, id) == score })
}
