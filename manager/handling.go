package manager

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/callbacks"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A handling decides of which tasks a run calls the callbacks, and tells other managers (docs/manager.md, "Callbacks").
type handling struct {
	*Manager
	own    callbacks.Handling
	said   task.Time
	ended  []int64 // tasks whose leases are no longer needed
	urgent bool    // whether others may need them
	others []callbacks.Handling
	warned map[string]bool // the calls of Run in other managers that handle tasks of the same groups

	// with AllGroups: whether a group belongs to others, and the tasks of such groups, with the round that saw them
	owned   map[string]bool
	foreign map[int64]int
}

// The record of a manager's groups, and its leases, count for sayFor after each renewal. Rounds renew them, and so does
// a goroutine, because a callback may take long.
const (
	sayPause = task.Seconds(1)
	sayFor   = task.Seconds(30)
	sayJump  = task.Seconds(1e10) // instead of sayFor, with the clock of a test, which jumps
	beat     = 10 * time.Second
)

// mostOwned is the largest number of groups of which a run knows whether they belong to others.
const mostOwned = 100_000

func (m *Manager) newHandling(c *Callbacks) *handling {
	return &handling{
		Manager: m, own: callbacks.Handling{
			ID: rand.Text(), Manager: m.in().Name, Groups: c.Groups, All: c.AllGroups, Forced: c.Force,
		},
		warned: map[string]bool{}, owned: map[string]bool{}, foreign: map[int64]int{},
	}
}

// say renews the record of this manager from time to time, and reads those of others. It reports whether it did so.
func (h *handling) say(ctx context.Context, now task.Time) (bool, error) {
	if since := now.Sub(h.said); h.said > 0 && since >= 0 && since < sayPause {
		return false, nil
	}
	h.said = now
	h.write(ctx, now)
	all, err := h.in().Store.Callbacks.Handlings(ctx, now)
	if err != nil {
		return false, err
	}
	h.learn(slices.DeleteFunc(all, func(o callbacks.Handling) bool { return o.ID == h.own.ID }))
	return true, nil
}

// holds returns how long the record and the leases count.
func (h *handling) holds() task.Seconds {
	if h.in().Wait != nil {
		return sayJump
	}
	return sayFor
}

// write stores the record. A full Redis refuses it, and the manager must continue, because archiving frees memory.
func (h *handling) write(ctx context.Context, now task.Time) {
	ctx, cancel := context.WithTimeout(ctx, registerBound)
	defer cancel()
	own := h.own
	own.Until = now.Add(h.holds())
	_ = h.in().Store.Callbacks.SayHandling(ctx, own)
}

// keep renews the records of the manager until the returned function is called.
func (h *handling) keep(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var beats sync.WaitGroup
	if h.in().Wait == nil { // the clock of a test stands still during callbacks
		beats.Go(func() {
			for conn.Sleep(ctx, beat) {
				if now, err := h.in().Store.Now(ctx); err == nil {
					h.write(ctx, now)
					_ = h.in().Store.Presence.ManagerHeartbeat(ctx, now, sayFor)
				}
			}
		})
	}
	return func() { cancel(); beats.Wait() }
}

// lease leases tasks, and returns the records of those whose callbacks no other manager calls.
func (h *handling) lease(ctx context.Context, ids []int64) ([]callbacks.Failure, error) {
	leased, err := h.in().Store.Callbacks.Lease(ctx, h.own.ID, h.holds(), ids, h.ended)
	if err == nil {
		h.ended, h.urgent = nil, false
	}
	return leased, err
}

// release ends the lease of a task with the next lease. If other managers may need the task, the round ends it.
func (h *handling) release(id int64, urgent bool) {
	h.ended, h.urgent = append(h.ended, id), h.urgent || urgent
}

// shares reports whether another manager is known to handle tasks of the same groups.
func (h *handling) shares() bool {
	return slices.ContainsFunc(h.others, func(o callbacks.Handling) bool {
		return h.own.Pipeline != "" && h.own.Pipeline == o.Pipeline || len(h.own.Overlap(&o)) > 0
	})
}

// leave removes the record and the leases. If Redis does not answer in time, the record ends later.
func (h *handling) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), registerBound)
	defer cancel()
	_, _ = h.lease(ctx, nil)
	_ = h.in().Store.Callbacks.EndHandlings(ctx, h.own.ID)
}

// learn remembers what others handle. It warns once of each manager that handles tasks of the same groups.
func (h *handling) learn(others []callbacks.Handling) {
	same := func(a, b callbacks.Handling) bool { return a.ID == b.ID }
	if !slices.EqualFunc(h.others, others, same) {
		clear(h.owned)
		clear(h.foreign)
	}
	h.others = others
	for i := range others {
		o := &others[i]
		if groups := h.own.Overlap(o); len(groups) > 0 && !h.warned[o.ID] {
			h.warned[o.ID] = true
			h.in().Log.Warn(
				"another manager handles tasks of the same groups, and the two share them",
				"manager", o.Manager, "groups", strings.Join(groups[:min(len(groups), 10)], ", "))
		}
	}
}

// isForeign reports whether Run leaves a task to another manager.
func (h *handling) isForeign(ctx context.Context, t *task.Task, round int) (bool, error) {
	if !h.own.All || h.own.Forced || t.Group == "" {
		return false, nil
	}
	owned, known := h.owned[t.Group]
	if !known {
		if len(h.owned) >= mostOwned {
			clear(h.owned)
		}
		records, invalid, err := h.in().Stages().StageRecords(ctx, []string{t.Group})
		if err != nil {
			return false, err
		}
		owned = records[0].Phase != task.StageUnopened || invalid[0] != nil ||
			slices.ContainsFunc(h.others, func(o callbacks.Handling) bool { return slices.Contains(o.Groups, t.Group) })
		h.owned[t.Group] = owned
	}
	if owned {
		h.foreign[t.ID] = round
	}
	return owned, nil
}

// sees reports whether a task is known to be foreign. It records that the task was seen in this round.
func (h *handling) sees(id int64, round int) bool {
	if _, foreign := h.foreign[id]; !foreign {
		return false
	}
	h.foreign[id] = round
	return true
}

// forget removes the tasks that were not seen in this round, because they were archived.
func (h *handling) forget(round int) {
	for id, seen := range h.foreign {
		if seen != round {
			delete(h.foreign, id)
		}
	}
}
