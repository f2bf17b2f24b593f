//go:build !linux

package local

import "syscall"

// apart returns the attributes of a child with its own process group. The child outlives this process if it is killed.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
