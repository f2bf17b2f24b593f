package worker

import (
	"log/slog"
	"sync"
)

// A drain is somebody's word that a worker is to claim nothing, from outside (docs/operations.md, "Draining
// a worker"). The worker runs on, so that whatever looks after it does not start it again.
type drain struct {
	mu      sync.Mutex
	by      string // who said so; "": nobody
	changed signal
}

func newDrain() drain { return drain{changed: make(signal, 1)} }

// obey takes what the last heartbeat was answered, and says whether that is new.
func (d *drain) obey(by string, log *slog.Logger) bool {
	d.mu.Lock()
	was := d.by
	d.by = by
	d.mu.Unlock()
	switch {
	case was == "" && by != "":
		log.Info("told to drain: nothing more is claimed", "by", by)
	case was != "" && by == "":
		log.Info("told to go on")
	default:
		return false
	}
	d.changed.give()
	return true
}

func (d *drain) on() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.by != ""
}

// doing is what the worker does as long as it is not told to stop.
func (w *Worker) doing() string {
	if w.drain.on() {
		return stateDraining
	}
	return stateWorking
}
