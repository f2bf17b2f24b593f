package redistest

import "syscall"

// diesWithThread returns the attributes of a child that the kernel kills when the thread that started the child ends.
func diesWithThread() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// watch does nothing, because diesWithThread is enough on Linux.
func watch(int) (stop func()) { return func() {} }
