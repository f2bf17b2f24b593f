package process

import (
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A Process is a program that was started, with all processes that it starts.
type Process struct {
	host    *Host
	cmd     Command
	started time.Time

	done    chan struct{} // closed when none of its processes is left
	exited  chan struct{} // closed when the program itself has ended
	noGrace chan struct{} // closed when the remaining processes get no more grace period
	hurry   sync.Once
	ending  atomic.Bool // whether End was called

	mu    sync.Mutex // guards ended
	ended Ended
	own   // parts that depend on the system
}

// Done returns a channel that is closed when the program has ended and none of its processes is left.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exited returns a channel that is closed when the program itself has ended. Processes that it started may be left.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Ended returns how the program ended. It is valid after Done is closed.
func (p *Process) Ended() Ended {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// End sends SIGTERM to all processes of the program, and SIGKILL when one of the two channels delivers or is closed.
// It returns when none of the program's processes is left.
func (p *Process) End(graceOver <-chan time.Time, noGrace <-chan struct{}) {
	p.ending.Store(true)
	p.terminate()
	select {
	case <-p.done:
		return
	case <-graceOver:
	case <-noGrace:
	}
	p.hurry.Do(func() { close(p.noGrace) })
	p.kill()
	<-p.done
}

// charge adds the resource usage of a process that was reaped.
func (p *Process) charge(ru *syscall.Rusage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended.CPU += time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	p.ended.MaxRSS = max(p.ended.MaxRSS, maxRSS(ru))
}

// exit returns how a process ended, in the words of docs/programs.md, "The end of a round".
func exit(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "signal: " + status.Signal().String()
	}
	return strconv.Itoa(status.ExitStatus())
}
