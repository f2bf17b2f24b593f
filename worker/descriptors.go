package worker

import (
	"os"
	"strconv"
	"syscall"
)

// closeOnExec keeps programs from inheriting descriptors that this process was started with, such as a lock or a socket. Go marks
// the files that it opens itself.
func closeOnExec() {
	entries, _ := os.ReadDir("/dev/fd")
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
