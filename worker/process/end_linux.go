package process

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"
)

// How long is waited before looking again whether something has ended, growing from the one to the other.
const (
	firstPause = 500 * time.Microsecond
	lastPause  = 50 * time.Millisecond
)

// doubtPasses is how often nothing must be seen of a program while orphans that may be its own, or
// another's, end all the time.
const doubtPasses = 16

// haltPasses is how often it is tried to bring all of a program to a stop before it is killed.
const haltPasses = 16

// finish returns when nothing is left of a program that has itself ended. What is left gets SIGTERM,
// the grace, SIGKILL, unless End sees to that.
func (p *Process) finish() {
	var grace <-chan time.Time
	noGrace, pause, killing, told := p.noGrace, firstPause, false, false
	slow := stubborn{pause: firstPause}
	for pass := 0; ; pass++ {
		left, certain := p.remains(pass > 0)
		switch {
		case len(left) == 0 && (certain || pass > doubtPasses) && ours.leave(p):
			return
		case killing:
			p.strike(left, &slow)
			if len(left) > 0 {
				pause = slow.pause
			}
		case len(left) > 0 && !told && !p.ending.Load():
			told = true
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

// remains returns the living processes of the program, and whether it is certain that these are all.
// Where it has a cgroup, /proc is only read if it must be, or if it is to be thorough.
func (p *Process) remains(thorough bool) (left []proc, certain bool) {
	if p.group != nil {
		if p.group.populated() {
			if left := p.group.members(); len(left) > 0 {
				return left, true
			}
		}
		if !thorough && !anyEnded() {
			return nil, true
		}
	}
	v := ours.scan()
	return v.living[p], !v.ended[p]
}

// members is remains of a program that runs, its escaped ones included.
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

func (p *Process) terminate() { p.signal(p.members(), syscall.SIGTERM) }

// kill kills all of a program that runs, until it has itself ended; finish does the rest.
func (p *Process) kill() {
	slow := stubborn{pause: firstPause}
	for {
		p.strike(p.members(), &slow)
		select {
		case <-p.exited:
			return
		case <-time.After(slow.pause):
		}
	}
}

// strike kills all that is there. After the first time it stops them before: what has stopped forks no
// more. What does not end after SIGKILL is logged once, and met with growing pauses.
func (p *Process) strike(all []proc, slow *stubborn) {
	p.killed.Store(true)
	mortal := all
	if p.group != nil && p.group.kill() == nil {
		mortal = slices.DeleteFunc(slices.Clone(all), func(pr proc) bool { return p.group.holds(pr.pid) })
	}
	if slow.last != nil && slow.same < haltPasses && len(mortal) > 0 {
		mortal = p.halt(mortal)
	}
	p.signal(mortal, syscall.SIGKILL)
	if len(all) == 0 {
		return
	}
	if slow.saw(all); slow.isNews() {
		p.host.log.Warn("waiting for processes of a program: they do not end after SIGKILL", "pids", some(all))
	}
}

// halt stops all that is there, and what they have forked meanwhile.
func (p *Process) halt(all []proc) []proc {
	for range haltPasses {
		moving := slices.DeleteFunc(slices.Clone(all), proc.stopped)
		if len(moving) == 0 {
			break
		}
		p.signal(moving, syscall.SIGSTOP)
		all = p.members()
	}
	return all
}

// signal signals each. What may not be killed, a program that has become root, say, is left alone.
func (p *Process) signal(all []proc, s syscall.Signal) {
	for _, pr := range all {
		err := pr.signal(s)
		if s != syscall.SIGKILL || !errors.Is(err, fs.ErrPermission) || errors.Is(err, os.ErrProcessDone) {
			continue
		}
		p.host.log.Warn("a process that a program left behind cannot be ended", "pid", pr.pid, "error", err)
		ours.giveUp(pr.key)
	}
}
