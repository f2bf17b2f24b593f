package worker

import (
	"os/exec"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// groupPoll is how often to look whether a group that was told to end has done so.
const groupPoll = 5 * time.Millisecond

// A process is a program that runs, and the process group that it leads. What leaves the group
// (setsid) is out of reach.
type process struct {
	cmd     *exec.Cmd
	done    chan struct{} // closed when it has ended, and its group with it
	noGrace chan struct{} // closed when what is left of the group may be killed
	ending  atomic.Bool
}

// start starts cmd as the leader of a new group. Its outputs must be files: nothing here waits
// for somebody who holds them open.
func start(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{}), noGrace: make(chan struct{})}
	cmd.SysProcAttr = processAttr()
	started := make(chan error)
	go p.supervise(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// supervise stays on one thread from start to end: where the kernel ends a child with its parent,
// the parent is the thread that started it.
func (p *process) supervise(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	defer close(p.done)
	awaitExit(p.cmd)
	ending := p.ending.Load()
	if !ending {
		p.signal(syscall.SIGKILL) // what it left behind; before Wait, so that the group is still its
	}
	_ = p.cmd.Wait() // how it ended is in ProcessState
	if ending {
		p.awaitGroup()
	}
}

// awaitGroup lets the rest of a group that was told to end do so.
func (p *process) awaitGroup() {
	poll := time.NewTicker(groupPoll)
	defer poll.Stop()
	for p.reap(); p.signal(0) == nil; p.reap() {
		select {
		case <-poll.C:
		case <-p.noGrace:
			p.signal(syscall.SIGKILL)
			return
		}
	}
}

// reap takes note of orphans of the group that have ended: a worker that is the first process
// of a container is their parent, and nobody else would.
func (p *process) reap() {
	for {
		pid, err := syscall.Wait4(-p.cmd.Process.Pid, nil, syscall.WNOHANG, nil)
		if pid <= 0 || err != nil {
			return
		}
	}
}

// end tells the group to end (SIGTERM), kills what is left of it (SIGKILL) when one of the
// channels says so, and returns when it is gone.
func (p *process) end(graceOver <-chan time.Time, haste <-chan struct{}) {
	p.ending.Store(true)
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return
	case <-graceOver:
	case <-haste:
	}
	close(p.noGrace)
	p.signal(syscall.SIGKILL)
	<-p.done
}

func (p *process) signal(s syscall.Signal) error { return syscall.Kill(-p.cmd.Process.Pid, s) }

// exit says how a process ended that is done: "0" to "255", or "signal: " and the signal's name
// (docs/programs.md, "How a program is run").
func (p *process) exit() string {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return "signal: " + status.Signal().String()
	}
	return strconv.Itoa(p.cmd.ProcessState.ExitCode())
}
