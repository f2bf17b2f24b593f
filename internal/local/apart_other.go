//go:build !linux

package local

import "syscall"

// apart returns the attributes of a child with its own process group. If this process is killed, the child keeps
// running.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
