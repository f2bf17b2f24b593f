package fetch

import "syscall"

// processAttr makes the kernel kill the child if this process is killed.
func processAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
