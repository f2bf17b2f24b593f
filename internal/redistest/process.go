package redistest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// startLimit is the maximum time for a server to become ready. Loading a large append-only file takes seconds.
const startLimit = time.Minute

// A process is one run of redis-server.
type process struct {
	cmd  *exec.Cmd
	log  *os.File      // the file has already been removed from its directory, so it needs no cleanup
	done chan struct{} // closed when the process has ended
}

// launch starts redis-server in dir, and waits until it accepts connections. The error contains the server's log.
func launch(dir string, args []string) (*process, error) {
	path, err := binary()
	if err != nil {
		return nil, err
	}
	log, err := os.CreateTemp("", "redistest-*.log")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(log.Name()); err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(path, args...), log: log, done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, log, log
	started := make(chan error)
	go p.supervise(started)
	if err := <-started; err != nil {
		log.Close()
		return nil, err
	}
	return p, p.awaitReady()
}

// supervise runs the process on a separate thread, and waits until it ends. The kernel kills the process when this
// thread ends. So the process also ends when the test process ends.
func (p *process) supervise(started chan<- error) {
	runtime.LockOSThread() // never unlocked, so that the thread ends with this function
	p.cmd.SysProcAttr = diesWithThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	stopWatch := watch(p.cmd.Process.Pid)
	p.cmd.Wait() // the error is ignored, because the server's log explains it
	stopWatch()
	close(p.done)
}

// awaitReady waits until the server's log says that the server accepts connections. A test connection to the port would
// prove nothing, because it could reach another process.
func (p *process) awaitReady() error {
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	limit := time.NewTimer(startLimit)
	defer limit.Stop()
	for {
		if strings.Contains(p.readLog(), "Ready to accept connections") {
			return nil
		}
		select {
		case <-poll.C:
		case <-p.done:
			defer p.log.Close()
			return fmt.Errorf("redis-server did not start: %s\n%s", p.cmd, p.readLog())
		case <-limit.C:
			p.kill()
			return fmt.Errorf("redis-server was not ready after %v: %s\n%s", startLimit, p.cmd, p.readLog())
		}
	}
}

// readLog returns the server's present log. It does not change the file's offset, because the server uses the same
// offset.
func (p *process) readLog() string {
	text, err := io.ReadAll(io.NewSectionReader(p.log, 0, 1<<20))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// signal sends a signal to the process, and waits until the process ends. It does nothing if the process has already
// ended.
func (p *process) signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %v to redis-server: %w", sig, err)
	}
	<-p.done
	return nil
}

func (p *process) kill() error { return p.signal(syscall.SIGKILL) }
