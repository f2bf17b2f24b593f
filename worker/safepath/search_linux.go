package safepath

import "golang.org/x/sys/unix"

// search is the flag to open a directory. With it, no right to read the directory is needed.
const search = unix.O_PATH
