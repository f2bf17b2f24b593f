package rounddir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Files returns where the files are that the program wants kept, and whether there are any. It
// is asked when the program has ended. The error says that what should be a directory is none.
func (d *Dir) Files() (dir string, any bool, err error) {
	any, err = d.holdsAny(filesDir)
	return d.in(filesDir), any, err
}

// KeepFiles moves files/ to another place, where it replaces what was there. It must be on the
// same file system. Where files/ holds nothing, nothing is there then.
func (d *Dir) KeepFiles(to string) error { return d.keep(filesDir, to) }

// KeepScratch does with scratch/ as KeepFiles does with files/.
func (d *Dir) KeepScratch(to string) error { return d.keep(scratchDir, to) }

func (d *Dir) keep(name, to string) error {
	any, err := d.holdsAny(name)
	if err != nil {
		return err
	}
	if err := RemoveAll(to); err != nil || !any {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	err = os.Rename(d.in(name), to)
	if errors.Is(err, unix.EXDEV) {
		return fmt.Errorf("%s/ can be kept only on the file system that the round's directory is on: %w", name, err)
	}
	return err
}

func (d *Dir) holdsAny(name string) (bool, error) {
	f, err := d.dir.open(name)
	switch {
	case errors.Is(err, unix.ENOENT):
		return false, nil
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return false, fmt.Errorf("%s is no directory any more: the program has replaced it", name)
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
