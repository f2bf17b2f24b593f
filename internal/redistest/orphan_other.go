//go:build !linux

package redistest

import (
	"os/exec"
	"strconv"
	"syscall"
)

func diesWithThread() *syscall.SysProcAttr { return nil }

// watch has a shell kill pid when this process ends: the shell's standard input is a pipe
// whose other end only this process holds.
func watch(pid int) (stop func()) {
	shell := exec.Command("sh", "-c", "read line; kill -9 "+strconv.Itoa(pid))
	if _, err := shell.StdinPipe(); err != nil {
		return func() {}
	}
	if err := shell.Start(); err != nil {
		return func() {}
	}
	return func() { // pid may be another's from now on
		shell.Process.Kill()
		shell.Wait()
	}
}
