package redisstate

import (
	"context"
	"slices"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
)

// callLists holds the lists of tasks that a call may change. It also holds the wake lists of the components that wait
// for tasks in these lists.
type callLists struct {
	lists []task.State
	wakes []wakeList
}

type wakeList struct {
	key string
	of  task.State
}

func (s *Store) callLists(ctx context.Context, units []Unit) callLists {
	v := callLists{lists: listsOf(units)}
	for _, list := range v.lists {
		for _, key := range s.wakeKeys(ctx, list) {
			v.wakes = append(v.wakes, wakeList{key, list})
		}
	}
	return v
}

// wakeKeys returns the wake lists of the components that wait for tasks in a list.
func (s *Store) wakeKeys(ctx context.Context, list task.State) []string {
	switch {
	case list == task.Open:
		return []string{s.Keys.WakeOpen()}
	case list == task.Executed:
		return []string{s.Keys.WakeServer()}
	case list.Settled():
		var keys []string
		for _, boot := range s.Presence.ManagersToWake(ctx) {
			keys = append(keys, s.Keys.WakeManager(boot))
		}
		return keys
	}
	return nil
}

// listsOf returns the lists of tasks that a call may change. If a worker reports a result, the task may already be in
// the executed list (see transact.lua). A finished task may be in the list archived, whatever its state says. If a move
// is a repair, the task may be in any list.
func listsOf(units []Unit) []task.State {
	used := map[task.State]bool{}
	for i := range units {
		if len(units[i].Open) > 0 {
			used[task.Open] = true
		}
		for j := range units[i].Moves {
			m := &units[i].Moves[j]
			if m.Repair {
				return rules.Lists
			}
			if m.From.Finished() {
				used[task.Archived] = true
			}
			if m.Verb == rules.VerbRequire {
				continue
			}
			used[m.From], used[m.To] = true, true
			if m.Claim != "" && m.From == task.Running {
				used[task.Executed] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(rules.Lists), func(list task.State) bool { return !used[list] })
}

// recordsKey is the index of the key of the records that units change.
const recordsKey = 5

func (s *Store) transactKeys(v callLists) []string {
	keys := []string{
		s.Keys.Calls(s.Conn.Boot()), s.Keys.Due(), s.Keys.TaskID(), s.Keys.Unique(), s.Keys.Groups(),
		s.Keys.Pipelines(),
	}
	for _, list := range v.lists {
		keys = append(keys, s.Keys.List(list))
	}
	for _, w := range v.wakes {
		keys = append(keys, w.key)
	}
	return keys
}
