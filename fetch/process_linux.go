package fetch

import "syscall"

// processAttr returns attributes with which the kernel kills the child if this process is killed.
func processAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
