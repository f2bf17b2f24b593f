package redistest

import "syscall"

// diesWithThread makes the kernel kill the child when the thread that started it ends.
func diesWithThread() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// watch does nothing on Linux, where diesWithThread is enough.
func watch(int) (stop func()) { return func() {} }
