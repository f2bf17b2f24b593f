package rounddir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// KeepScratch moves scratch/ into another directory, and gives it a new name. It removes anything that had this name
// before. Both directories must be on the same file system.
func (d *Dir) KeepScratch(to *os.File, name string) error {
	if err := d.dir.moveTo(to, name); err != nil {
		return err
	}
	// another program of the user may have replaced the directory before the move
	var info unix.Stat_t
	if err := unix.Fstatat(int(to.Fd()), name, &info, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR {
		return errors.Join(errors.New("scratch is not a directory: the program replaced it"),
			unix.Unlinkat(int(to.Fd()), name, 0))
	}
	return nil
}

func (d *dir) moveTo(to *os.File, name string) error {
	at, err := openDir(int(to.Fd()), ".", 0)
	if err != nil {
		return err
	}
	defer at.Close()
	if err := removeIn(at, name); err != nil {
		return &fs.PathError{Op: "remove", Path: filepath.Join(to.Name(), name), Err: err}
	}
	err = unix.Renameat(d.fd(), ScratchDir, int(to.Fd()), name)
	if errors.Is(err, unix.EXDEV) {
		return fmt.Errorf("cannot keep scratch/: the target is on another file system than the round's directory: %w",
			err)
	}
	if err != nil {
		return &fs.PathError{Op: "rename", Path: filepath.Join(to.Name(), name), Err: err}
	}
	return nil
}
