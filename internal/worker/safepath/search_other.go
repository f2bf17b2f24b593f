//go:build !linux

package safepath

import "golang.org/x/sys/unix"

// search is the flag to open a directory. This system has no O_PATH.
const search = unix.O_RDONLY
