package process

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// ownSession is that of this process.
var ownSession = sync.OnceValue(func() int {
	sid, _ := unix.Getsid(os.Getpid())
	return sid
})

// anyEnded says whether any child of this process, whosever it is, waits to be waited for.
func anyEnded() bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err == nil && info.Signo != 0
		}
	}
}

// awaitExit returns when a child has ended, and leaves it to be waited for: until then nobody else
// gets its number.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}
