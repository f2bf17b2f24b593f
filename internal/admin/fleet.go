package admin

import (
	"context"

	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// A fleet is the server and the workers of a namespace at one time. Stats, Watch, Explain and Diagnose use its methods
// to count workers and slots. The methods follow these rules:
//   - A worker is alive if its lease holds and it has not reported that it has ended.
//   - A live worker claims tasks if its state is working and nobody ordered it to drain.
//   - Only slots of workers that claim tasks count.
//   - A slot is busy if a task runs in it. Two kinds of running tasks do not make a slot busy: tasks whose leases ran
//     out, and tasks on live workers that claim no tasks.
type fleet struct {
	at      task.Time
	server  task.Time // when a server was seen last; 0 if never
	workers []presence.WorkerStatus
	sources []task.FailingSource // those that are held
	running int                  // the number of running tasks
	lost    int                  // the number of running tasks whose leases ran out

	original bool // workers of the original TDF may run tasks; read only if no worker is alive
}

// readFleet reads the fleet. The caller passes the number of running tasks of all groups.
func readFleet(ctx context.Context, s store, at task.Time, running int64) (fleet, error) {
	f := fleet{at: at, running: int(running)}
	err := readings(
		func() (err error) { f.server, err = s.LastServerHeartbeat(ctx); return err },
		func() (err error) { f.workers, err = s.Workers(ctx); return err },
		func() (err error) { f.sources, err = s.HeldSources(ctx); return err },
		func() (err error) {
			if running > 0 {
				f.lost, err = countLost(ctx, s, at)
			}
			return err
		},
	)
	if err == nil && f.count().alive == 0 {
		var settings task.Settings
		settings, _, _, err = s.Room(ctx)
		f.original = settings.OriginalWorkers
	}
	return f, err
}

// mostLost is the maximum number of running tasks whose leases are checked. The longest-running tasks are checked
// first.
const mostLost = 1000

// countLost counts the running tasks whose leases ran out. The server has not settled these tasks yet.
func countLost(ctx context.Context, s store, now task.Time) (int, error) {
	running := task.Query{States: []task.State{task.Running}, Order: task.OldestFirst}
	page, err := listing.Find(ctx, s, running, "", mostLost)
	n := 0
	for _, t := range page.Tasks {
		if t.LeaseExpired(now) {
			n++
		}
	}
	return n, err
}

// States of a [Worker]. One that is silent or gone is not alive.
const (
	WorkerWorking  = presence.WorkerWorking
	WorkerDraining = presence.WorkerDraining
	WorkerGone     = presence.WorkerGone // it has signed off
	WorkerSilent   = "silent"            // its lease has run out, and it has not signed off
)

func (f *fleet) stateOf(w *presence.WorkerStatus) string {
	if w.State != WorkerGone && !w.Alive(f.at) {
		return WorkerSilent
	}
	return w.State
}

// A census holds the numbers of workers and slots in a fleet.
type census struct {
	alive, claiming int            // numbers of workers
	states          map[string]int // number of workers by state, without workers that have ended
	slots, busy     int

	// free is the number of free slots. Heartbeats and running tasks give two numbers, and free is the lower number,
	// because both may be out of date.
	free int
}

func (f *fleet) count() census {
	c := census{states: map[string]int{}}
	busy, free := f.running-f.lost, 0
	for i := range f.workers {
		w := &f.workers[i]
		if state := f.stateOf(w); state != WorkerGone {
			c.states[state]++
		}
		switch {
		case w.Claims(f.at):
			c.alive, c.claiming = c.alive+1, c.claiming+1
			c.slots += w.Slots
			free += max(0, w.Slots-len(w.Runs))
		case w.Alive(f.at):
			c.alive++
			busy -= len(w.Runs)
		}
	}
	c.busy = min(max(0, busy), c.slots)
	c.free = min(free, c.slots-c.busy)
	return c
}

// add adds the live workers of another namespace.
func (c *census) add(other *census) {
	c.alive, c.claiming = c.alive+other.alive, c.claiming+other.claiming
	c.slots, c.busy = c.slots+other.slots, c.busy+other.busy
}
