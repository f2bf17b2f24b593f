package scale

// A demand is what one round of the command has found.
type demand struct {
	waiting  int // tasks that a worker of these jobs could claim now
	free     int // free slots of their workers: they will claim tasks without another job
	slots    int // of one worker, at least 1
	jobs     int // jobs that are pending or running
	starting int // those of the jobs whose workers have not registered yet
	most     int // jobs at the same time
	probe    bool
}

// submissions returns how many jobs to submit. With probe, this is one, and only if no other job is starting.
func (d demand) submissions() int {
	waiting := max(0, d.waiting-d.free)
	wanted := (waiting+d.slots-1)/d.slots - d.starting
	if d.probe {
		wanted = min(wanted, 1-d.starting)
	}
	return max(0, min(wanted, d.most-d.jobs))
}
