package fetch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

const journalName = reservedPrefix + "install.json"

// A journal lists the files that an installation adds to ./$program/, so that the installation can be undone. A failed
// installation is undone at once. If the process dies during the installation, the next fetch undoes it. The next fetch
// also undoes a complete installation without run.sh: users remove run.sh to have a program fetched again.
type journal struct {
	// Done is set before run.sh is moved into place. Afterwards, the program may run and make files.
	Done bool `json:"done"`
	// Existed is set if the directory existed before the fetch. Before lists the names that were in the directory.
	Existed bool     `json:"existed"`
	Before  []string `json:"before,omitempty"`
	// Files are the paths of the fetched files and of the files that setup.sh made. They are slash-separated. A
	// directory comes before its files.
	Files []string `json:"files"`
}

// installing reports whether an installation in dir is unfinished. A directory made by hand has no journal.
func installing(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, journalName))
	return err == nil
}

// repair undoes an earlier installation if the directory has no run.sh.
func (j *job) repair() error {
	var old journal
	err := readJSON(filepath.Join(j.dir, journalName), &old)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w; remove the program's directory", journalName, err)
	}
	j.Log.Info("earlier fetch without run.sh is undone", "program", j.program)
	return old.undo(j.dir)
}

// undo restores dir to its state before the installation. It works through os.Root, because programs that ran in dir
// may have made links there.
func (o *journal) undo(dir string) error {
	if !o.Done && !o.Existed {
		return os.RemoveAll(dir)
	}
	root, err := openProgram(filepath.Dir(dir), filepath.Base(dir))
	if err != nil {
		return err
	}
	defer root.Close()
	if err := o.removeFiles(root); err != nil {
		return err
	}
	if !o.Done {
		if err := removeOthers(root, dir, o.Before); err != nil {
			return err
		}
	}
	return removeOwn(root)
}

// removeFiles removes run.sh, the fetched files, and the files that setup.sh made. It keeps directories that contain
// other files. After an interrupted removal, run.sh may still exist (remove.go).
func (o *journal) removeFiles(root *os.Root) error {
	if o.Done {
		if err := root.Remove(runScript); err != nil && !gone(err) {
			return err
		}
	}
	for _, name := range slices.Backward(o.Files) {
		if err := root.Remove(name); err != nil && !gone(err) && !errors.Is(err, syscall.ENOTEMPTY) {
			return err
		}
	}
	return nil
}

// removeOwn removes this package's own files. It removes the journal last, so that an interrupted undo can be repeated.
func removeOwn(root *os.Root) error {
	for _, name := range []string{recordName, removedName, journalName} {
		if err := root.Remove(name); err != nil && !gone(err) {
			return err
		}
	}
	return nil
}

func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// removeOthers removes the entries of dir that are not in keep: setup.sh made them. It does not remove the journal.
func removeOthers(root *os.Root, dir string, keep []string) error {
	now, err := topLevel(dir)
	if err != nil {
		return err
	}
	for _, name := range now {
		if name == journalName || slices.Contains(keep, name) {
			continue
		}
		if err := root.RemoveAll(name); err != nil {
			return err
		}
	}
	return nil
}

func topLevel(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}
