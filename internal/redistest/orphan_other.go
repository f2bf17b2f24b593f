//go:build !linux

package redistest

import (
	"os/exec"
	"strconv"
	"syscall"
)

func diesWithThread() *syscall.SysProcAttr { return nil }

// watch starts a shell that kills pid when this process ends. The shell reads a pipe that only this process holds.
func watch(pid int) (stop func()) {
	shell := exec.Command("sh", "-c", "read line; kill -9 "+strconv.Itoa(pid))
	if _, err := shell.StdinPipe(); err != nil {
		return func() {}
	}
	if err := shell.Start(); err != nil {
		return func() {}
	}
	return func() { // another process may get pid now
		shell.Process.Kill()
		shell.Wait()
	}
}
