package process

import "golang.org/x/sys/unix"

// moveThread makes this thread run on some cores, and so each process that it starts, from its first instruction on.
// The returned function undoes that for the thread, to which the caller's goroutine must be locked. Best effort: the
// program then runs on all cores, which costs time and nothing else.
func moveThread(cores []int) (back func()) {
	var before, set unix.CPUSet
	for _, n := range cores {
		set.Set(n)
	}
	if len(cores) == 0 || unix.SchedGetaffinity(0, &before) != nil || unix.SchedSetaffinity(0, &set) != nil {
		return func() {}
	}
	return func() { _ = unix.SchedSetaffinity(0, &before) }
}

// memory returns the limit of the program's memory, or 0.
func (p *Process) memory() int64 {
	all := p.host.cfg.Memory
	if p.cmd.Memory > 0 && (all == 0 || p.cmd.Memory < all) {
		return p.cmd.Memory
	}
	return all
}
