package process

import (
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ownSession is the session of this process.
var ownSession = sync.OnceValue(func() int {
	sid, _ := unix.Getsid(os.Getpid())
	return sid
})

// anyEnded returns the PID of a child of this process that has ended and was not reaped yet, or 0.
func anyEnded() int {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			if err != nil || info.Signo == 0 {
				return 0
			}
			return pidIn(&info)
		}
	}
}

// pidIn returns the PID in the answer of waitid. The PID is the first field after the part that all kinds of siginfo
// have in common.
func pidIn(info *unix.Siginfo) int {
	const common = unsafe.Sizeof(int32(0)) * 3
	at := (common + unsafe.Alignof(uintptr(0)) - 1) &^ (unsafe.Alignof(uintptr(0)) - 1)
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), at)))
}

// awaitExit returns when a child has ended. It does not reap the child, so no other process can get the child's PID
// yet.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}
