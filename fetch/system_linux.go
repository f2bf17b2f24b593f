package fetch

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// flush writes all changes of dir's file system to disk. One call is enough for any number of changed files.
func flush(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return os.NewSyscallError("syncfs", unix.Syncfs(int(d.Fd())))
}

// processAttr returns attributes with which the kernel kills the child if this process is killed.
func processAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
