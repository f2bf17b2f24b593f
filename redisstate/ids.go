package redisstate

import (
	"slices"
	"strconv"
)

// idsOf returns the ids among the members of a list. It skips members that another program has added.
func idsOf(members []string) []int64 {
	ids := make([]int64, 0, len(members))
	for _, m := range members {
		if id, err := strconv.ParseInt(m, 10, 64); err == nil && strconv.FormatInt(id, 10) == m {
			ids = append(ids, id)
		}
	}
	return ids
}

// unique sorts ids and removes duplicates.
func unique(ids []int64) []int64 {
	slices.Sort(ids)
	return slices.Compact(ids)
}
