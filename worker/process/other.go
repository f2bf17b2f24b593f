//go:build !linux

package process

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// groupPoll is the time between two checks whether a process group has ended.
const groupPoll = 5 * time.Millisecond

// A Host starts programs. On this system it has no isolation, and finds a program's processes only by their process
// group.
type Host struct {
	cfg       Config
	isolation isolation
	users     []runAs // one user for each slot, or one user for all slots
}

// own has the parts of a Process that depend on the system.
type own struct {
	os     *os.Process
	status *os.ProcessState
}

// New returns a Host. If isolation that Config.Require asks for is missing, the error names it.
func New(cfg Config) (*Host, error) {
	h := &Host{cfg: cfg, isolation: newIsolation(cfg)}
	for _, name := range known {
		h.isolation.set(name, errors.New("not on "+runtime.GOOS))
	}
	var err error
	if h.users, err = lookUp(cfg); err != nil {
		return nil, err
	}
	return h, h.isolation.require(cfg.Require)
}

// Hold does nothing on this system.
func (h *Host) Hold() (release func()) { return func() {} }

// Close does nothing on this system.
func (h *Host) Close() error { return nil }

// Sweep finds nothing on this system.
func Sweep(context.Context, string, *slog.Logger) int { return 0 }

// Start starts a program. It returns the same errors as os/exec.
func (h *Host) Start(cmd Command) (*Process, error) {
	c := exec.Command(cmd.Path, cmd.Args...)
	c.Dir, c.Env = cmd.Dir, append([]string{}, cmd.Env...)
	if cmd.Stdout != nil {
		c.Stdout = cmd.Stdout
	}
	if cmd.Stderr != nil {
		c.Stderr = cmd.Stderr
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: h.userOf(cmd.Slot).credential}
	if err := c.Start(); err != nil {
		return nil, err
	}
	p := &Process{
		host: h, cmd: cmd, own: own{os: c.Process}, started: time.Now(),
		done: make(chan struct{}), exited: make(chan struct{}), noGrace: make(chan struct{}),
	}
	go p.supervise(c)
	return p, nil
}

func (p *Process) supervise(c *exec.Cmd) {
	defer close(p.done)
	_ = c.Wait() // ProcessState says how the program ended
	status := c.ProcessState
	if ru, ok := status.SysUsage().(*syscall.Rusage); ok {
		p.charge(ru)
	}
	p.mu.Lock()
	p.ended.Ran, p.ended.Exit = time.Since(p.started), exit(status.Sys().(syscall.WaitStatus))
	p.mu.Unlock()
	close(p.exited)
	p.outlast()
}

// outlast ends the remaining processes of the group, and returns when none is left.
func (p *Process) outlast() {
	var grace <-chan time.Time
	if p.signal(0) == nil && !p.ending.Load() {
		p.terminate()
		if p.host.cfg.LingerGrace != nil {
			grace = p.host.cfg.LingerGrace()
		} else {
			p.kill()
		}
	}
	poll := time.NewTicker(groupPoll)
	defer poll.Stop()
	for noGrace := p.noGrace; p.signal(0) == nil; {
		select {
		case <-poll.C:
		case <-grace:
			grace = nil
			p.kill()
		case <-noGrace:
			noGrace = nil
			p.kill()
		}
	}
}

func (p *Process) terminate() { _ = p.signal(syscall.SIGTERM) }

func (p *Process) kill() { _ = p.signal(syscall.SIGKILL) }

// PID returns the process id of the program itself.
func (p *Process) PID() int { return p.os.Pid }

func (p *Process) signal(s syscall.Signal) error { return syscall.Kill(-p.os.Pid, s) }

func maxRSS(ru *syscall.Rusage) int64 { return ru.Maxrss }
