package worker

import (
	"os"
	"strconv"
	"syscall"
)

// closeOnExec keeps from programs what this process was itself started with: a terminal's log,
// a lock, a socket. What it opens by itself is kept from them by Go.
func closeOnExec() {
	entries, _ := os.ReadDir("/dev/fd")
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
