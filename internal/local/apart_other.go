//go:build !linux

package local

import "syscall"

// ownProcessGroup returns the attributes of a child with its own process group. If this process is killed, the child
// keeps running.
func ownProcessGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
