package local

import "syscall"

// apart: a child in a process group of its own, which ends when the thread that started it does.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
