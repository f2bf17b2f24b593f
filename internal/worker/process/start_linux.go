package process

import (
	"cmp"
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// own has the parts of a Process that depend on the system.
type own struct {
	key
	group     *group // nil if the program has no cgroup
	reaped    bool   // whether the program itself was reaped
	inherited int64  // peak memory of this process in bytes; the kernel also counts it as the program's peak

	leaving sync.RWMutex // guards left
	left    bool         // whether the program has left its cgroup
}

var errClosed = errors.New("the worker stops, and starts no more programs")

// Start starts a program. It returns the same errors as os/exec, so errors.Is finds ENOENT, EACCES and so on.
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

// startHere starts the program on this thread. If drop is true, the thread first gives up its privileges.
func (p *Process) startHere(drop bool) error {
	if drop {
		if err := dropPrivileges(); err != nil {
			return err
		}
	}
	if err := p.start(); err != nil {
		return err
	}
	p.host.add(p)
	return nil
}

// supervise starts the program, and waits for its end. It stays on one thread, because the kernel ends a child when the
// thread that started the child ends.
func (p *Process) supervise(started chan<- error) {
	runtime.LockOSThread()
	drop := p.host.userOf(p.cmd.Slot).credential != nil
	if !drop {
		defer runtime.UnlockOSThread()
	}
	err := p.startHere(drop)
	started <- err
	if err != nil {
		return
	}
	p.await()
	close(p.exited)
	p.finish()
	p.settle()
	p.leaveGroup()
	p.host.remove(p)
	close(p.done)
}

// dropPrivileges makes setuid files useless for programs that this thread starts. A thread cannot take this back. So
// its goroutine must stay locked to it until both end.
func dropPrivileges() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
}

func (p *Process) start() error {
	err := p.forkInGroup()
	if err != nil {
		p.removeGroup()
	}
	return err
}

// forkInGroup starts the program in a cgroup, if there are cgroups. An earlier program may have changed a cgroup so
// that no program can start there. Then forkInGroup tries again with a new cgroup.
func (p *Process) forkInGroup() (err error) {
	all := p.host.cgroups
	if all == nil {
		return p.fork()
	}
	if p.group, err = all.take(p.memory()); err != nil {
		return err
	}
	if err = p.fork(); err == nil || !p.group.used || !isOfCgroup(err) {
		return err
	}
	p.removeGroup()
	if p.group, err = all.newGroup(p.memory()); err != nil {
		return err
	}
	return p.fork()
}

// isOfCgroup reports whether fork may have failed because of the cgroup.
func isOfCgroup(err error) bool {
	for _, cause := range []error{syscall.EBUSY, syscall.ENODEV, syscall.EOPNOTSUPP, syscall.EAGAIN} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// fork starts the program, and registers it before a scan can mistake it for an orphan. Unlike os/exec, it opens no
// files.
func (p *Process) fork() error {
	attr := syscall.ProcAttr{Dir: p.cmd.Dir, Env: lastOfEach(p.cmd.Env), Sys: p.host.attr(p.cmd.Slot)}
	for _, f := range []*os.File{nil, p.cmd.Stdout, p.cmd.Stderr} {
		attr.Files = append(attr.Files, cmp.Or(f, p.host.null).Fd())
	}
	if p.cmd.Kept != nil {
		for len(attr.Files) < KeptDescriptor {
			attr.Files = append(attr.Files, ^uintptr(0)) // closed
		}
		attr.Files = append(attr.Files, p.cmd.Kept.Fd())
	}
	if p.group != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(p.group.open.Fd())
	}
	ours.forks.RLock()
	defer ours.forks.RUnlock()
	back := moveThread(p.cmd.Cores)
	pid, err := syscall.ForkExec(p.cmd.Path, append([]string{p.cmd.Path}, p.cmd.Args...), &attr)
	back()
	runtime.KeepAlive(p)
	if err != nil {
		return &os.PathError{Op: "fork/exec", Path: p.cmd.Path, Err: err}
	}
	p.started, p.inherited = time.Now(), ownPeak()
	seen, err := look(pid)
	if err != nil { // look fails if no descriptor is left, for example; the program can still be ended
		seen.pid = pid
	}
	p.key = seen.key
	ours.join(p)
	return nil
}

// lastOfEach returns the environment with only the last variable of each name.
func lastOfEach(env []string) []string {
	last := make(map[string]int, len(env))
	for i, variable := range env {
		name, _, _ := strings.Cut(variable, "=")
		last[name] = i
	}
	if len(last) == len(env) {
		return env
	}
	kept := make([]string, 0, len(last))
	for i, variable := range env {
		if name, _, _ := strings.Cut(variable, "="); last[name] == i {
			kept = append(kept, variable)
		}
	}
	return kept
}

func (h *Host) attr(slot int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Credential: h.userOf(slot).credential}
}

// await returns when the program itself has ended.
func (p *Process) await() {
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
		var status syscall.WaitStatus
		var ru syscall.Rusage
		_, err := syscall.Wait4(p.pid, &status, 0, &ru)
		if err == syscall.EINTR {
			continue
		}
		if err != nil { // other code of this process has reaped the program, although it must not
			p.host.log.Error("the exit status of a program is unknown", "pid", p.pid, "error", err)
			status = 255 << 8
		}
		p.reaped = true
		p.charge(&ru)
		p.mu.Lock()
		p.ended.Exit = exit(status)
		p.mu.Unlock()
	}
}

// leaveGroup gives the cgroup back, so that another program can use it.
func (p *Process) leaveGroup() {
	p.leaving.Lock()
	p.left = true
	p.leaving.Unlock()
	if p.group == nil {
		return
	}
	if err := p.host.cgroups.put(p.group); err != nil {
		p.host.log.Warn("a program's cgroup could not be removed", "error", err)
	}
}

func (p *Process) removeGroup() {
	if p.group == nil {
		return
	}
	if err := p.host.cgroups.remove(p.group); err != nil {
		p.host.log.Warn("a program's cgroup could not be removed", "error", err)
	}
}
