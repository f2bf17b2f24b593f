package fetch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

const journalName = reservedPrefix + "install.json"

// A journal says what an installation adds to ./$program/, so that it can be undone: at once
// when it fails, at the next fetch when its process died, and when someone removed run.sh to
// have the program fetched anew.
type journal struct {
	// Done: run.sh was about to come. From then on programs run and leave files of their own.
	Done bool `json:"done"`
	// Existed: the directory was there before, with Before at its top level.
	Existed bool     `json:"existed"`
	Before  []string `json:"before,omitempty"`
	// Files are what comes from the source, and then what setup.sh made of it: slash-separated,
	// parents first.
	Files []string `json:"files"`
}

// installing tells a directory whose installation is under way, or died, from one made by hand.
func installing(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, journalName))
	return err == nil
}

// repair undoes what an earlier installation left in a directory without run.sh.
func (j *job) repair() error {
	var old journal
	err := readJSON(filepath.Join(j.dir, journalName), &old)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return errors.New(journalName + " cannot be read; remove the program's directory")
	}
	j.Log.Info("undoing an earlier fetch that has no run.sh", "program", j.program)
	return old.undo(j.dir)
}

// undo makes dir what it was. All of it goes through os.Root: what runs in dir may have put
// links there since.
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

// removeFiles removes what came, and what setup.sh made of it; run.sh first, which is there when a
// removal was interrupted ("remove.go"). A directory stays where something else was put into it.
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

// removeOwn removes this package's own files, the journal last: until then all of this can be
// done once more.
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

// removeOthers removes what setup.sh made at the top level. The journal itself comes last.
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
