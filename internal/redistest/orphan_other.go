//go:build !linux

package redistest

import (
	"os/exec"
	"strconv"
	"syscall"
)

func diesWithThread() *syscall.SysProcAttr { return nil }

// watch starts a shell that kills the process pid when this process ends. The shell reads from a pipe that only this
// process can write to, so the pipe ends when this process ends.
func watch(pid int) (stop func()) {
	shell := exec.Command("sh", "-c", "read line; kill -9 "+strconv.Itoa(pid))
	if _, err := shell.StdinPipe(); err != nil {
		return func() {}
	}
	if err := shell.Start(); err != nil {
		return func() {}
	}
	return func() { // ends the shell; otherwise the shell could kill a later process with the same pid
		shell.Process.Kill()
		shell.Wait()
	}
}
