package fetch

import (
	"os"

	"golang.org/x/sys/unix"
)

// flush writes all changes of dir's file system to disk. One call is enough for any number of changed files.
func flush(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return os.NewSyscallError("syncfs", unix.Syncfs(int(d.Fd())))
}
