//go:build !linux

package redistest

import (
	"os/exec"
	"strconv"
	"syscall"
)

func diesWithThread() *syscall.SysProcAttr { return nil }

// watch starts a shell that kills the process pid when this process ends. The shell notices this at the end of a pipe
// that only this process can write to.
func watch(pid int) (stop func()) {
	shell := exec.Command("sh", "-c", "read line; kill -9 "+strconv.Itoa(pid))
	if _, err := shell.StdinPipe(); err != nil {
		return func() {}
	}
	if err := shell.Start(); err != nil {
		return func() {}
	}
	return func() { // when the process has ended, pid may belong to another process
		shell.Process.Kill()
		shell.Wait()
	}
}
