package local

import "syscall"

// apart returns the attributes of a child with its own process group. The kernel kills the child when the thread that
// started the child ends.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
