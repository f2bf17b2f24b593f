package worker

import (
	"log/slog"
	"sync"
)

// A drain is a user's order to claim nothing more (docs/operations.md, "Draining a worker"). The worker's process
// keeps running, so that a service manager does not restart it.
type drain struct {
	mu      sync.Mutex
	by      string // who gave the order; "" means that there is no order
	changed signal
}

func newDrain() drain { return drain{changed: make(signal, 1)} }

// obey follows the order in the answer to a heartbeat. by is the name of the user who gave the order, or "" if there is
// no order. obey returns whether the order has changed.
func (d *drain) obey(by string, log *slog.Logger) bool {
	d.mu.Lock()
	was := d.by
	d.by = by
	d.mu.Unlock()
	switch {
	case was == "" && by != "":
		log.Info("draining by order: nothing more is claimed", "by", by)
	case was != "" && by == "":
		log.Info("the order to drain is withdrawn: claiming again")
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
