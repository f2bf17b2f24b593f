//go:build !linux

package safepath

import "golang.org/x/sys/unix"

// search opens a directory. On this system, it must be readable.
const search = unix.O_RDONLY
