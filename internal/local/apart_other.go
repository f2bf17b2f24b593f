//go:build !linux

package local

import "syscall"

// apart: a child in a process group of its own. Nothing ends it when this process is killed.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
