package process

import (
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A Process is a program that was started, and all that it starts.
type Process struct {
	host    *Host
	cmd     Command
	os      *os.Process
	started time.Time

	done    chan struct{} // closed when nothing of it is left
	exited  chan struct{} // closed when the program itself has ended
	noGrace chan struct{} // closed when what is left may be killed
	hurry   sync.Once
	ending  atomic.Bool // End was called
	killed  atomic.Bool // SIGKILL was sent from here

	mu    sync.Mutex // guards ended
	ended Ended
	own   // what the system adds
}

// Done is closed when the program has ended and nothing of it is left.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended says how it ended. It makes no sense before Done is closed.
func (p *Process) Ended() Ended {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// End sends SIGTERM to all that belongs to the program, SIGKILL when one of the channels says so,
// and returns when it is Done.
func (p *Process) End(graceOver <-chan time.Time, haste <-chan struct{}) {
	p.ending.Store(true)
	p.terminate()
	select {
	case <-p.done:
		return
	case <-graceOver:
	case <-haste:
	}
	p.hurry.Do(func() { close(p.noGrace) })
	p.kill()
	<-p.done
}

// charge adds the cost of a process that was waited for.
func (p *Process) charge(ru *syscall.Rusage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended.CPU += time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	p.ended.MaxRSS = max(p.ended.MaxRSS, maxRSS(ru))
}

// exit says how a process ended, in the words of docs/programs.md, "How a program is run".
func exit(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "signal: " + status.Signal().String()
	}
	return strconv.Itoa(status.ExitStatus())
}
