package fetch

import (
	"os"

	"golang.org/x/sys/unix"
)

// flush writes all changes of dir's file system to disk, whatever the number of changed files is.
func flush(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return os.NewSyscallError("syncfs", unix.Syncfs(int(d.Fd())))
}
