package rounddir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Files reports whether files/ has entries. It must be called after the program has ended. It returns an error if
// files/ is not a directory.
func (d *Dir) Files() (bool, error) {
	if !d.OnDisk() {
		return false, nil
	}
	if d.unchanged() {
		return false, nil
	}
	return holdsAny(d.dir, filesDir)
}

// KeepFiles moves files/ into another directory, and gives it a new name. It removes anything that had this name before.
// Both directories must be on the same file system. An empty files/ is not moved.
func (d *Dir) KeepFiles(to *os.File, name string) error { return d.keep(filesDir, to, name) }

// KeepScratch moves scratch/ in the same way as [Dir.KeepFiles] moves files/.
func (d *Dir) KeepScratch(to *os.File, name string) error { return d.keep(ScratchDir, to, name) }

func (d *Dir) keep(what string, to *os.File, name string) error {
	some, err := holdsAny(d.dir, what)
	if err != nil || !some {
		return err
	}
	return moveDirectory(d.dir, what, to, name)
}

func moveDirectory(from *dir, what string, to *os.File, name string) error {
	if err := move(from, what, to, name, what); err != nil {
		return err
	}
	// another program of the user may have replaced the directory before the move
	var info unix.Stat_t
	if err := unix.Fstatat(int(to.Fd()), name, &info, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR {
		return errors.Join(errNoDirectory(what), unix.Unlinkat(int(to.Fd()), name, 0))
	}
	return nil
}

func removeOld(in *os.File, name string) error {
	at, err := openDir(int(in.Fd()), ".", 0)
	if err != nil {
		return err
	}
	defer at.Close()
	return removeIn(at, name)
}

func move(from *dir, name string, to *os.File, toName, what string) error {
	if err := removeOld(to, toName); err != nil {
		return &fs.PathError{Op: "remove", Path: filepath.Join(to.Name(), toName), Err: err}
	}
	err := unix.Renameat(from.fd(), name, int(to.Fd()), toName)
	if errors.Is(err, unix.EXDEV) {
		return fmt.Errorf("cannot keep %s/: the target is on another file system than the round's directory: %w", what,
			err)
	}
	if err != nil {
		return &fs.PathError{Op: "rename", Path: filepath.Join(to.Name(), toName), Err: err}
	}
	return nil
}

func errNoDirectory(name string) error {
	return fmt.Errorf("%s is not a directory: the program replaced it", name)
}

func holdsAny(in *dir, name string) (bool, error) {
	f, err := in.open(name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return false, nil
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return false, errNoDirectory(name)
	case err != nil:
		return false, fmt.Errorf("%s: %w", name, err)
	}
	defer f.Close()
	names, err := f.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return len(names) > 0, err
}
