package fetch

import "syscall"

// processAttr also ends the child when this process is killed and cannot do it itself.
func processAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
