//go:build !linux

package safepath

import "golang.org/x/sys/unix"

// search opens a directory, which must be readable on this system.
const search = unix.O_RDONLY
