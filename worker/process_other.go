//go:build !linux

package worker

import (
	"os/exec"
	"syscall"
)

func processAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit cannot look without waiting for it here.
func awaitExit(cmd *exec.Cmd) { _ = cmd.Wait() }
