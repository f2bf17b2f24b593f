package results

import (
	"slices"
	"sync"
	"time"
)

// Bounds of the tables of a process.
const (
	maxTables = 4 // about 25 MB each at most
	tableLife = 10 * time.Minute
)

// Tables holds the tables that were used last. The zero value is ready.
type Tables struct {
	mu  sync.Mutex
	all []*usedTable // the last used first
}

type usedTable struct {
	*Table
	used time.Time
}

// Of returns the table of a choice. It forgets tables that were not used for ten minutes, and all but the last four.
// Tables that are joined count as one.
func (all *Tables) Of(c Choice) (*Table, error) { return all.of(c, time.Now()) }

func (all *Tables) of(c Choice, now time.Time) (*Table, error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.all = slices.DeleteFunc(all.all, func(t *usedTable) bool { return now.Sub(t.used) > tableLife })
	i := slices.IndexFunc(all.all, func(t *usedTable) bool { return t.choice == c })
	if i < 0 {
		made, err := NewTable(c)
		if err != nil {
			return nil, err
		}
		i, all.all = 0, slices.Insert(all.all, 0, &usedTable{Table: made})
	}
	t := all.all[i]
	t.used = now
	all.all = slices.Insert(slices.Delete(all.all, i, i+1), 0, t)
	all.all = all.all[:min(len(all.all), maxTables*max(1, c.Of))]
	return t.Table, nil
}
