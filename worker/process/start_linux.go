package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// own has the parts of a Process that depend on the system.
type own struct {
	key
	group     *group // nil if the program has no cgroup
	status    syscall.WaitStatus
	reaped    bool // whether the program itself was reaped
	oomBefore int64
	inherited int64 // peak memory of this process in bytes; the kernel also counts it as the program's peak
}

var errClosed = errors.New("the worker stops, and starts no more programs")

// Start starts a program. Its errors are those of os/exec: errors.Is finds ENOENT, EACCES and so on.
func (h *Host) Start(cmd Command) (*Process, error) {
	p := &Process{
		host: h, cmd: cmd,
		done: make(chan struct{}), exited: make(chan struct{}), noGrace: make(chan struct{}),
	}
	h.opening.RLock()
	defer h.opening.RUnlock()
	if h.closed {
		return nil, errClosed
	}
	started := make(chan error)
	go p.supervise(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// PID returns the process id of the program itself.
func (p *Process) PID() int { return p.pid }

// supervise starts the program, and waits for its end. It stays on one thread for two reasons: the kernel ends a child
// when the thread that started it ends, and only that thread may trace the child.
func (p *Process) supervise(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.start()
	if err == nil {
		p.host.add(p)
	}
	started <- err
	if err != nil {
		return
	}
	p.await()
	close(p.exited)
	p.finish()
	p.settle()
	p.removeGroup()
	p.host.remove(p)
	close(p.done)
}

func (p *Process) start() error {
	if p.host.cgroups != nil {
		g, err := p.host.cgroups.newGroup(p.host.cfg.Limits)
		if err != nil {
			return err
		}
		p.group = g
	}
	if p.group == nil || !p.host.cgroups.has["memory"] {
		p.oomBefore = oomKills()
	}
	err := p.fork()
	if err == nil && len(p.host.limits) > 0 {
		err = p.limit()
	}
	if err != nil {
		p.removeGroup()
	}
	return err
}

// fork starts the program, and registers it before a scan can mistake it for an orphan.
func (p *Process) fork() error {
	cmd := exec.Command(p.cmd.Path, p.cmd.Args...)
	cmd.Dir, cmd.Env = p.cmd.Dir, append([]string{}, p.cmd.Env...)
	if p.cmd.Stdout != nil {
		cmd.Stdout = p.cmd.Stdout
	}
	if p.cmd.Stderr != nil {
		cmd.Stderr = p.cmd.Stderr
	}
	cmd.SysProcAttr = p.host.attr(p.cmd.Slot)
	cmd.SysProcAttr.Ptrace = len(p.host.limits) > 0
	if p.group != nil {
		dir, err := os.Open(p.group.dir)
		if err != nil {
			return err
		}
		defer dir.Close()
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	}
	ours.forks.RLock()
	defer ours.forks.RUnlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	p.os, p.started, p.inherited = cmd.Process, time.Now(), ownPeak()
	seen, err := look(cmd.Process.Pid)
	if err != nil { // look fails if no descriptor is left, for example; the program can still be ended
		seen.pid = cmd.Process.Pid
	}
	p.key = seen.key
	ours.join(p)
	return nil
}

func (h *Host) attr(slot int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Credential: h.of(slot).credential}
}

// limit sets the limits while the program is stopped before its first instruction. Then it lets the program run.
func (p *Process) limit() error {
	if _, ended := awaitTrap(p.pid); ended != nil {
		p.note(ended)
		return nil
	}
	if err := asUser(p.host.of(p.cmd.Slot).credential, p.applyLimits); err != nil {
		p.discard()
		return err
	}
	p.started = time.Now()
	if err := syscall.PtraceDetach(p.pid); err != nil && err != syscall.ESRCH { // ESRCH means that the program was killed
		p.discard()
		return os.NewSyscallError("ptrace", err)
	}
	return nil
}

func (p *Process) applyLimits() error {
	for _, l := range p.host.limits {
		if err := l.apply(p.pid); err != nil {
			return fmt.Errorf("the limit %s could not be set: %w", l.name, err)
		}
	}
	return nil
}

// discard ends a program whose limits could not be set.
func (p *Process) discard() {
	_ = p.os.Kill()
	p.await()
	p.finish()
}

// await returns when the program itself has ended.
func (p *Process) await() {
	if p.reaped {
		return
	}
	awaitExit(p.pid)
	p.mu.Lock()
	p.ended.Ran = time.Since(p.started)
	p.mu.Unlock()
	if p.group != nil {
		p.reap() // with a cgroup, the program's PID is no longer needed
	}
}

// reap waits for the program itself.
func (p *Process) reap() {
	for !p.reaped {
		var e end
		_, err := syscall.Wait4(p.pid, &e.status, 0, &e.rusage)
		if err == syscall.EINTR {
			continue
		}
		if err != nil { // other code of this process has reaped the program, although it must not
			p.host.log.Error("the exit status of a program is unknown", "pid", p.pid, "error", err)
			e.status = 255 << 8
		}
		p.note(&e)
	}
}

func (p *Process) note(e *end) {
	p.status, p.reaped = e.status, true
	p.charge(&e.rusage)
	p.mu.Lock()
	p.ended.Exit = exit(e.status)
	p.mu.Unlock()
	_ = p.os.Release()
}

func (p *Process) removeGroup() {
	if p.group == nil {
		return
	}
	if err := p.group.remove(); err != nil {
		p.host.log.Warn("a program's cgroup could not be removed", "error", err)
	}
}
