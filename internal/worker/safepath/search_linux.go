package safepath

import "golang.org/x/sys/unix"

// search is the flag to open a directory. With this flag, the worker needs no right to read the directory.
const search = unix.O_PATH
