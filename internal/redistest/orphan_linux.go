package redistest

import "syscall"

// diesWithThread has the kernel kill the child when the thread that started it ends.
func diesWithThread() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// watch has nothing to do: the kernel watches.
func watch(int) (stop func()) { return func() {} }
