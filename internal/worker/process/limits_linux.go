package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// A limit is a resource limit that the Host sets on the program's process. The field name is the kind of isolation,
// such as [Memory].
type limit struct {
	name  string
	apply func(pid int) error
}

// ownLimits returns the limits that no cgroup enforces.
func (h *Host) ownLimits() []limit {
	l, inGroup := h.cfg.Limits, map[string]bool{}
	if h.cgroups != nil {
		inGroup = h.cgroups.has
	}
	var all []limit
	if l.Memory > 0 && !inGroup["memory"] {
		all = append(all, limit{Memory, rlimit(unix.RLIMIT_AS, uint64(l.Memory))})
	}
	if l.Processes > 0 && !inGroup["pids"] {
		all = append(all, limit{Processes, rlimit(unix.RLIMIT_NPROC, uint64(l.Processes))})
	}
	return all
}

// rlimit returns a function that sets a resource limit of a process. It never raises the hard limit.
func rlimit(resource int, most uint64) func(pid int) error {
	return func(pid int) error {
		var is unix.Rlimit
		if err := unix.Prlimit(pid, resource, nil, &is); err != nil {
			return err
		}
		most := min(most, is.Max)
		return unix.Prlimit(pid, resource, &unix.Rlimit{Cur: most, Max: most}, nil)
	}
}

// asUser calls the function do while this thread has the user and group of c as its real user and group. The effective
// user and group do not change. A thread may change the limits of a process if it has the same real user, or the
// capability CAP_SYS_RESOURCE. In a container, root may lack this capability. The caller must have locked this thread,
// since only this thread changes its user.
func asUser(c *syscall.Credential, do func() error) error {
	const keep = ^uintptr(0)
	set := func(uid, gid int) error {
		if _, _, err := syscall.RawSyscall(syscall.SYS_SETRESGID, uintptr(gid), keep, keep); err != 0 {
			return os.NewSyscallError("setresgid", err)
		}
		if _, _, err := syscall.RawSyscall(syscall.SYS_SETRESUID, uintptr(uid), keep, keep); err != 0 {
			return os.NewSyscallError("setresuid", err)
		}
		return nil
	}
	if c == nil {
		return do()
	}
	uid, gid := os.Getuid(), os.Getgid()
	if err := set(int(c.Uid), int(c.Gid)); err != nil {
		return errors.Join(err, set(uid, gid))
	}
	return errors.Join(do(), set(uid, gid))
}

// probeLimits tries to set the limits on a shell, and returns the limits that work. It ends the shell before the
// shell's first instruction.
func (h *Host) probeLimits(all []limit) (works []limit) {
	fail := func(err error) {
		for _, l := range all {
			h.isolation.set(l.name, err)
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ours.forks.RLock()
	defer ours.forks.RUnlock()
	cmd := exec.Command("/bin/sh")
	cmd.SysProcAttr = h.attr(1)
	cmd.SysProcAttr.Ptrace = true
	if err := cmd.Start(); err != nil {
		fail(fmt.Errorf("limits are set by ptrace, which does not work here: %w", err))
		return nil
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if _, ended := awaitTrap(cmd.Process.Pid); ended != nil {
		fail(errors.New("limits are set by ptrace, which does not work here: the process did not stop"))
		return nil
	}
	for _, l := range all {
		err := asUser(h.userOf(1).credential, func() error { return l.apply(cmd.Process.Pid) })
		h.isolation.set(l.name, err)
		if err != nil {
			continue
		}
		works = append(works, l)
	}
	return works
}

// An end is the answer of wait4 about a process that has ended.
type end struct {
	status syscall.WaitStatus
	rusage syscall.Rusage
}

// awaitTrap returns when a traced process stops at its exec. If the process has ended instead, awaitTrap returns its
// end.
func awaitTrap(pid int) (syscall.WaitStatus, *end) {
	for {
		var e end
		_, err := syscall.Wait4(pid, &e.status, syscall.WALL, &e.rusage)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return 0, nil
		case !e.status.Stopped():
			return e.status, &e
		case e.status.StopSignal() == syscall.SIGTRAP:
			return e.status, nil
		default:
			_ = syscall.PtraceCont(pid, int(passOn(e.status.StopSignal()))) // the process got another signal
		}
	}
}

// passOn returns the signal to pass on to the process. It returns 0 for a signal that would stop the process again.
func passOn(s syscall.Signal) syscall.Signal {
	switch s {
	case syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
		return 0
	}
	return s
}
