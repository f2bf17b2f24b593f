package safepath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// OpenFile opens a file below base for reading. It makes no directories. The error is [fs.ErrNotExist] if there is no
// entry with that name. For a link to a missing file, OpenFile returns a different error.
//
// OpenFile returns an error if the file has several names and is in a directory that another user controls. That user
// may have made a hard link to a file of root there.
func OpenFile(base, below string) (*os.File, error) {
	path := filepath.Join(base, below)
	if os.Geteuid() != 0 {
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, explainMissing(path, err)
		}
		return f, err
	}
	w := &walk{rest: split(filepath.Clean(below)), findOnly: true}
	defer w.close()
	err := w.start(base)
	linked := false // whether the last part of the path is a link
	for err == nil {
		if len(w.rest) > 1 {
			err = w.step()
			continue
		}
		var f *os.File
		if f, err = w.file(path); f != nil {
			return f, nil
		}
		linked = linked || err == nil
	}
	if linked && errors.Is(err, fs.ErrNotExist) {
		err = linksNowhere(path)
	}
	return nil, err
}

// file opens the last part of the path. If that part is a link, file returns no file, and the walk continues at the
// link's target.
func (w *walk) file(as string) (*os.File, error) {
	name := w.rest[0]
	if name == "" {
		name = "." // the target of a link ends with a slash
	}
	path := filepath.Join(w.path, name)
	fd, err := unix.Openat(w.at, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, w.follow(name, path)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), as)
	if err := w.checkNames(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// checkNames returns an error if another user may have made a hard link to the file.
func (w *walk) checkNames(f *os.File) error {
	var info unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &info); err != nil {
		return &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	if info.Mode&unix.S_IFMT == unix.S_IFREG && info.Nlink > 1 && w.check() != nil {
		return fmt.Errorf("%s: the file has %d names, and another user could have made one of them; replace it by a "+
			"copy", f.Name(), info.Nlink)
	}
	return nil
}

// explainMissing returns err if the file is missing, and another error if the path is a link to a missing file.
func explainMissing(path string, err error) error {
	if _, wrong := os.Lstat(path); wrong != nil {
		return err
	}
	return linksNowhere(path)
}

func linksNowhere(path string) error {
	return fmt.Errorf("%s: it is a link to a missing file", path)
}
