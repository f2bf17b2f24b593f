package local

import "syscall"

// ownProcessGroup returns the attributes of a child with its own process group. The kernel kills the child when the
// thread that started the child ends.
func ownProcessGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
