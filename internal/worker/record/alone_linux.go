package record

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// isOnlyOpenHere reports whether the given descriptor is certainly the only one for its file on this machine. The
// kernel grants a lease for writing only in this case: it counts all open files, also those in messages between
// processes and in mappings. Copies of the same descriptor count as one, so programs get descriptors from another open.
func isOnlyOpenHere(fd int) bool {
	err := lease(fd)
	if err != unix.EAGAIN {
		return err == nil // other errors: for example, a file system without leases
	}
	// While this process starts a program, the new process has all descriptors until its exec.
	for range leaseTries {
		syscall.ForkLock.RLock()
		err = lease(fd)
		syscall.ForkLock.RUnlock()
		if err == nil {
			return true
		}
		time.Sleep(leasePause)
	}
	return false
}

// The kernel closes descriptors a moment after exec lets the parent process continue.
const (
	leaseTries = 3
	leasePause = 50 * time.Microsecond
)

func lease(fd int) error {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		return err
	}
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
	return err
}
