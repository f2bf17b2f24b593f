package fetch

import (
	"os"

	"golang.org/x/sys/unix"
)

// flush puts the file system that holds dir on its disk: one call, however many files.
func flush(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return os.NewSyscallError("syncfs", unix.Syncfs(int(d.Fd())))
}
