package process

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"
)

// The pause between two searches for remaining processes grows from firstPause to lastPause.
const (
	firstPause = 500 * time.Microsecond
	lastPause  = 50 * time.Millisecond
)

// If an orphan ends during a scan, the scan may miss processes that the orphan started. The constant doubtPasses is how
// often finish repeats the scan for this reason.
const doubtPasses = 16

// haltScans is how often halt searches for new processes before a Host kills the processes that it has found.
const haltScans = 16

// finish is called when the program itself has ended. It returns when none of the program's processes is left. If End
// was not called, finish sends the remaining processes SIGTERM and, after the grace period, SIGKILL.
func (p *Process) finish() {
	var grace <-chan time.Time
	noGrace, pause, killing, reported := p.noGrace, firstPause, false, false
	slow := stubborn{pause: firstPause}
	for pass := 0; ; pass++ {
		left, certain := p.remains(pass > 0)
		switch {
		case len(left) == 0 && (certain || pass > doubtPasses) && ours.leave(p):
			return
		case killing:
			p.killPass(func() []proc { return left }, &slow)
			if len(left) > 0 {
				pause = slow.pause
			}
		case len(left) > 0 && !reported && !p.ending.Load():
			reported = true
			p.linger(left)
			grace = p.host.lingerGrace()
		}
		timer := time.NewTimer(pause)
		select {
		case <-grace:
			grace, killing = nil, true
		case <-noGrace:
			noGrace, killing = nil, true
		case <-timer.C:
			pause = min(2*pause, lastPause)
		}
		timer.Stop()
	}
}

func (p *Process) linger(left []proc) {
	p.mu.Lock()
	p.ended.Lingered = len(left)
	p.mu.Unlock()
	p.signal(left, syscall.SIGTERM)
}

// remains returns the living processes of the program. If the program certainly has no other processes, certain is
// true. If the program has a cgroup, remains reads /proc only for a thorough search, or if an orphan has ended whose
// children may have escaped from the cgroup.
func (p *Process) remains(thorough bool) (left []proc, certain bool) {
	if p.group != nil {
		if p.group.populated() {
			if left := p.group.members(); len(left) > 0 {
				return left, true
			}
		}
		if !thorough && !ours.orphanEnded() {
			return nil, true
		}
	}
	v := ours.scan()
	return v.living[p], !v.ended[p]
}

// members returns the living processes of a program that still runs. It includes processes that escaped from the
// cgroup.
func (p *Process) members() []proc {
	left := ours.scan().living[p]
	if p.group == nil {
		return left
	}
	for _, pr := range p.group.members() {
		if !slices.ContainsFunc(left, func(other proc) bool { return other.key == pr.key }) {
			left = append(slices.Clip(left), pr)
		}
	}
	return left
}

func (p *Process) terminate() {
	p.whilePresent(func() { p.signal(p.members(), syscall.SIGTERM) })
}

// whilePresent calls the function do, unless the program has already left its cgroup. A cgroup that the program has
// left may belong to another program.
func (p *Process) whilePresent(do func()) {
	p.leaving.RLock()
	defer p.leaving.RUnlock()
	if !p.left {
		do()
	}
}

// kill repeatedly kills all processes of a running program, until the program itself has ended. Then finish ends the
// remaining processes.
func (p *Process) kill() {
	slow := stubborn{pause: firstPause}
	for {
		p.whilePresent(func() { p.killPass(p.members, &slow) })
		select {
		case <-p.exited:
			return
		case <-time.After(slow.pause):
		}
	}
}

// killPass kills the processes that find returns, and also processes that they have forked in the meantime. It empties
// the cgroup before it calls find, because this needs no search. It logs once if processes do not end after SIGKILL. It
// records each pass in slow, which makes the pauses between the passes longer.
func (p *Process) killPass(find func() []proc, slow *stubborn) {
	emptied := p.group != nil && p.group.kill() == nil
	all := find()
	if len(all) == 0 {
		return
	}
	dying := func(pr proc) bool { return emptied && p.group.holds(pr.pid) }
	p.signal(p.halt(all, slow.last, dying), syscall.SIGKILL)
	slow.saw(all)
	if slow.isNews() {
		p.host.log.Warn("waiting for processes of a program: they do not end after SIGKILL", "pids", firstPIDs(all))
	}
}

// halt stops the given processes with SIGSTOP, and also processes that they have forked in the meantime. It returns all
// of them, except those that are dying. It does not stop the processes in killed, which got SIGKILL in an earlier pass.
//
// Without halt, a fork bomb at its limit on processes would start a new process for each one that is killed. And while
// it runs, it takes most of the CPU time that the searches need. halt signals each process only once, and does not wait
// until the process has stopped, since a process with a pending signal cannot begin a fork. On a busy machine, it may
// take seconds until the process gets CPU time and stops.
func (p *Process) halt(all []proc, killed map[key]bool, dying func(proc) bool) []proc {
	halted := map[key]bool{}
	for scans := 0; ; scans++ {
		all = slices.DeleteFunc(slices.Clone(all), dying)
		fresh := slices.DeleteFunc(slices.Clone(all), func(pr proc) bool { return killed[pr.key] || halted[pr.key] })
		if len(fresh) == 0 || scans == haltScans {
			return all
		}
		p.signal(fresh, syscall.SIGSTOP)
		for _, pr := range fresh {
			halted[pr.key] = true
		}
		all = p.members()
	}
}

// signal sends the signal s to each process. It skips processes that this user may not signal, for example because
// they have become root.
func (p *Process) signal(all []proc, s syscall.Signal) {
	for _, pr := range all {
		err := pr.signal(s)
		if s != syscall.SIGKILL || !errors.Is(err, fs.ErrPermission) || errors.Is(err, os.ErrProcessDone) {
			continue
		}
		p.host.log.Warn("a process that a program left behind cannot be ended", "pid", pr.pid, "error", err)
		ours.ignore(pr.key)
	}
}
