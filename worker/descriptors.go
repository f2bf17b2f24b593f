package worker

import (
	"os"
	"strconv"
	"syscall"
)

// closeOnExec marks the descriptors that this process inherited, such as a lock or a socket. Programs then do not
// inherit them. Go marks the files that it opens itself.
func closeOnExec() {
	entries, _ := os.ReadDir("/dev/fd")
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
