package redisstate

import (
	"context"
	"slices"

	"github.com/tdf-framework/tdf"
)

// callLists holds the lists of tasks that a call may change. It also holds the wake lists of the components that wait
// for tasks in these lists.
type callLists struct {
	lists []tdf.State
	wakes []wakeList
}

type wakeList struct {
	key string
	of  tdf.State
}

func (s *Store) callLists(ctx context.Context, units []Unit) callLists {
	v := callLists{lists: listsOf(units)}
	for _, list := range v.lists {
		switch {
		case list == tdf.Open:
			v.wakes = append(v.wakes, wakeList{s.keys.wakeOpen(), list})
		case list == tdf.Executed:
			v.wakes = append(v.wakes, wakeList{s.keys.wakeServer(), list})
		case list.Settled():
			for _, boot := range s.managersToWake(ctx) {
				v.wakes = append(v.wakes, wakeList{s.keys.wakeManager(boot), list})
			}
		}
	}
	return v
}

// listsOf returns the lists of tasks that a call may change. If a worker reports a result, the task may already be in
// the executed list (see transact.lua). If a move is a repair, the task may be in any list.
func listsOf(units []Unit) []tdf.State {
	used := map[tdf.State]bool{}
	for i := range units {
		if len(units[i].Open) > 0 {
			used[tdf.Open] = true
		}
		for j := range units[i].Moves {
			m := &units[i].Moves[j]
			if m.Repair {
				return tdf.Lists
			}
			used[m.From], used[m.To] = true, true
			if m.Claim != "" && m.From == tdf.Running {
				used[tdf.Executed] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(tdf.Lists), func(list tdf.State) bool { return !used[list] })
}

func (s *Store) transactKeys(v callLists) []string {
	keys := []string{s.keys.calls(s.boot), s.keys.Due(), s.keys.taskID()}
	for _, list := range v.lists {
		keys = append(keys, s.keys.List(list))
	}
	for _, w := range v.wakes {
		keys = append(keys, w.key)
	}
	return keys
}
