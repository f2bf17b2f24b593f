package scale

import (
	"slices"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/redisstate/counts"
)

// A demand is what one round of the command has found.
type demand struct {
	waiting  []counts.Claimable // tasks that a worker of these jobs could claim now
	free     []room             // of their workers, which will claim tasks without another job
	whole    room               // of a worker that runs nothing
	jobs     int                // jobs that are pending or running
	starting int                // those of the jobs whose workers have not registered yet
	most     int                // jobs at the same time
	probe    bool
}

// A room is what a worker has free. Without capacities, only tasks that ask for nothing fit.
type room struct {
	slots      int
	capacities class.Capacities
}

// submissions returns how many jobs to submit. With probe, this is one, and only if no other job is starting.
func (d *demand) submissions() int {
	most := d.most - d.jobs
	if d.probe {
		most = min(most, 1-d.starting)
	}
	rooms := slices.Concat(d.free, slices.Repeat([]room{d.whole}, d.starting))
	known := len(rooms)
	for _, w := range d.waiting {
		n := w.Tasks
		for i := range rooms {
			n -= rooms[i].take(w.Request, n)
		}
		for n > 0 && len(rooms)-known < most {
			of := d.whole
			took := of.take(w.Request, n)
			if took == 0 {
				break
			}
			rooms, n = append(rooms, of), n-took
		}
	}
	return len(rooms) - known
}

// take takes what up to n tasks with a request need, and returns how many of them fit.
func (r *room) take(of class.Request, n int) (fit int) {
	if r.capacities == nil {
		if of != nil {
			return 0
		}
		fit = min(n, r.slots)
		r.slots -= fit
		return fit
	}
	if of == nil {
		of = class.PlainRequest
	}
	for ; fit < n && r.slots > 0; fit++ {
		left, alternative := r.capacities.Without(of)
		if alternative < 0 {
			break
		}
		r.capacities = left
		r.slots--
	}
	return fit
}
