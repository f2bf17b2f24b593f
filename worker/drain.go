package worker

import (
	"log/slog"
	"sync/atomic"
)

// A drain is a user's order to claim nothing more (docs/operations.md, "Draining a worker"). The worker's process
// keeps running, so that a service manager does not restart it.
type drain struct {
	by      atomic.Pointer[string] // who gave the order; nil or "" means that there is no order
	changed signal
}

// obey follows the order in the answer to a heartbeat. by is the name of the user who gave the order, or "" if there is
// no order. obey returns whether the order has changed.
func (d *drain) obey(by string, log *slog.Logger) bool {
	was := d.on()
	d.by.Store(&by)
	switch {
	case !was && by != "":
		log.Info("draining by order: nothing more is claimed", "by", by)
	case was && by == "":
		log.Info("the order to drain is withdrawn: claiming again")
	default:
		return false
	}
	d.changed.give()
	return true
}

func (d *drain) on() bool {
	by := d.by.Load()
	return by != nil && *by != ""
}
