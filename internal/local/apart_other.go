//go:build !linux

package local

import "syscall"

// ownProcessGroup returns the attributes of a child with its own process group.
func ownProcessGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
