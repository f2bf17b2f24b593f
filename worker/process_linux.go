package worker

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttr also ends the program when the worker is killed and cannot do it itself.
func processAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit returns when the process has ended, and leaves it to be waited for: until then
// nobody else gets its number.
func awaitExit(cmd *exec.Cmd) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}
