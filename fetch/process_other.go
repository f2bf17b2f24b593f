//go:build !linux

package fetch

import "syscall"

func processAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true}
}
