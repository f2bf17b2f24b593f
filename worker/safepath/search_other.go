//go:build !linux

package safepath

import "golang.org/x/sys/unix"

// search is the flag to open a directory. On this system, the directory must be readable.
const search = unix.O_RDONLY
