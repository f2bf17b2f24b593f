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

// clone makes the file to share its content with the file from, until one of them is written. Few file systems can do
// that.
func clone(to, from *os.File) error {
	return unix.IoctlFileClone(int(to.Fd()), int(from.Fd()))
}

// lockByte locks a byte of a file until the file is closed. It returns false if another open file has locked the
// byte.
func lockByte(f *os.File, at int64) (bool, error) {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: at, Len: 1}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock)
	if err == unix.EAGAIN || err == unix.EACCES {
		return false, nil
	}
	return err == nil, os.NewSyscallError("fcntl", err)
}

// unlockByte gives a byte back.
func unlockByte(f *os.File, at int64) {
	_ = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK, Start: at, Len: 1})
}

// bytesLocked reports whether another open file has locked one of n bytes. If n is 0, there is no last byte.
func bytesLocked(f *os.File, first, n int64) (bool, error) {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: first, Len: n}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock)
	return lock.Type != unix.F_UNLCK, os.NewSyscallError("fcntl", err)
}
