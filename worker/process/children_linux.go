package process

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// ownSession is the session of this process.
var ownSession = sync.OnceValue(func() int {
	sid, _ := unix.Getsid(os.Getpid())
	return sid
})

// anyEnded reports whether a child of this process has ended and was not reaped yet.
func anyEnded() bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err == nil && info.Signo != 0
		}
	}
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
