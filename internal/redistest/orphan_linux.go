package redistest

import "syscall"

// diesWithThread returns attributes with which the kernel kills the child when the thread that started it ends.
func diesWithThread() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// watch does nothing, because diesWithThread is enough on Linux.
func watch(int) (stop func()) { return func() {} }
