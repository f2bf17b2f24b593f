// Package timers lets tests of other packages own the timers of a worker.
package timers

import "time"

// Set replaces the timers of a worker, which must be a *worker.Worker. When such a worker stops, it waits for Redis
// without a limit. Package worker sets Set.
var Set func(worker any, after func(time.Duration) <-chan time.Time)
