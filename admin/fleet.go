package admin

import (
	"context"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/friend"
	"github.com/tdf-framework/tdf/internal/listing"
	"github.com/tdf-framework/tdf/redisstate"
)

// A fleet is a snapshot of the server and the workers of a namespace. It is the only place where Stats, Watch, Explain and Diagnose
// count workers and slots:
//   - A worker is alive while its lease holds, until it reports that it has gone.
//   - A live worker claims tasks if its state is working and it is not ordered to drain.
//   - The slots are those of the workers that claim tasks.
//   - A slot is busy if a task runs in it. Tasks whose leases are over, and tasks on live workers that do not claim, occupy none of
//     these slots.
type fleet struct {
	at      tdf.Time
	server  tdf.Time // when a server was seen last; 0: never
	workers []redisstate.WorkerStatus
	running int // tasks
	lost    int // of these, tasks whose leases are over
}

// readFleet reads the fleet; running is the number of running tasks of all groups.
func readFleet(ctx context.Context, s store, at tdf.Time, running int64) (fleet, error) {
	f := fleet{at: at, running: int(running)}
	var err error
	if f.server, err = s.LastServerHeartbeat(ctx); err != nil {
		return f, err
	}
	if f.workers, err = s.Workers(ctx); err != nil || running == 0 {
		return f, err
	}
	f.lost, err = countLost(ctx, s, at)
	return f, err
}

// mostLost is how many running tasks are checked for their leases, those that have run for the longest time first.
const mostLost = 1000

// countLost counts the running tasks whose leases are over. Their workers are gone, and the server has not settled them yet.
func countLost(ctx context.Context, s store, now tdf.Time) (int, error) {
	page, err := listing.Find(ctx, s, listing.Query{States: []tdf.State{tdf.Running}, OldestFirst: true}, "", mostLost)
	n := 0
	for _, t := range page.Tasks {
		if t.LeaseExpired(now) {
			n++
		}
	}
	return n, err
}

// serverMissing reports whether no server has been seen for a while.
func (f *fleet) serverMissing() bool { return f.at.Sub(f.server) > friend.ServerPatience }

// The states of a worker. A worker whose lease is over is silent, whatever its last heartbeat said.
const (
	workerStarting = "starting"
	workerWorking  = "working"
	workerDraining = "draining"
	workerGone     = "gone"
	workerSilent   = "silent"
)

func (f *fleet) stateOf(w *redisstate.WorkerStatus) string {
	if w.State != workerGone && !w.Alive(f.at) {
		return workerSilent
	}
	return w.State
}

// claims reports whether a worker is alive and claims tasks.
func (f *fleet) claims(w *redisstate.WorkerStatus) bool {
	return w.Alive(f.at) && w.State == workerWorking && w.Drained == ""
}

// A census counts the workers and slots of a fleet.
type census struct {
	alive, claiming int            // workers
	states          map[string]int // workers by state, without those that are gone
	slots, busy     int
	free            int // free slots, both by the heartbeats and by the running tasks, since either may be late
}

func (f *fleet) count() census {
	c := census{states: map[string]int{}}
	busy, free := f.running-f.lost, 0
	for i := range f.workers {
		w := &f.workers[i]
		if state := f.stateOf(w); state != workerGone {
			c.states[state]++
		}
		switch {
		case f.claims(w):
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
