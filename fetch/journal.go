package fetch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

const journalName = reservedPrefix + "install.json"

// A journal lists the files that an installation adds to ./$program/. The journal serves to undo the installation. A
// failed installation is undone at once. If the process dies during the installation, the next fetch undoes it. If a
// user has removed run.sh so that the program is fetched again, the next fetch undoes the complete installation.
type journal struct {
	// Done is set just before run.sh is moved into place. From then on, the program may run and create files.
	Done bool `json:"done"`
	// Existed means that the directory existed before the fetch. The field Before lists the names that were in the
	// directory before the fetch.
	Existed bool     `json:"existed"`
	Before  []string `json:"before,omitempty"`
	// Files holds the slash-separated paths of the files that were fetched or that setup.sh created. A directory
	// precedes its files.
	Files []string `json:"files"`
	// Saved tells how run.sh and the Files were when the installation was done, in this order. It serves to find out
	// whether a round has changed them.
	Saved []saved `json:"saved,omitempty"`
	// CopyOf is the program of which this is a copy.
	CopyOf string `json:"copy_of,omitempty"`
}

// hasJournal reports whether dir contains a journal. A directory made by hand contains no journal. If dir contains a
// journal but no record, an installation is unfinished.
func hasJournal(dir string) bool {
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
		return damaged(journalName, err)
	}
	j.Log.Info("earlier fetch without run.sh is undone", "program", j.program)
	return old.undo(j.dir, j.Outputs)
}

// undo restores dir to its state before the installation. It uses os.Root, because a program that ran in dir may have
// created links there. outputs is [Fetcher.Outputs].
func (o *journal) undo(dir, outputs string) error {
	root, err := openProgram(filepath.Dir(dir), filepath.Base(dir))
	if err != nil {
		return err
	}
	defer root.Close()
	if err := o.removeFiles(root); err != nil {
		return err
	}
	if !o.Done {
		if err := removeOthers(root, dir, append(slices.Clone(o.Before), outputs)); err != nil {
			return err
		}
	}
	if err := removeOwn(root); err != nil {
		return err
	}
	if !o.Done && !o.Existed {
		_ = unix.Rmdir(dir) // fails if someone else has put files there
	}
	return nil
}

// removeFiles removes run.sh, the fetched files, and the files that setup.sh created. It keeps directories that contain
// other files.
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

// removeOwn removes the files that belong to this package. It removes the journal last, so that an interrupted undo can
// be repeated.
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

// removeOthers removes the entries of dir that setup.sh has created: all except those in keep, the journal, and those
// that belong to another user, who put them there meanwhile.
func removeOthers(root *os.Root, dir string, keep []string) error {
	now, err := topLevel(dir)
	if err != nil {
		return err
	}
	for _, name := range now {
		if name == journalName || slices.Contains(keep, name) {
			continue
		}
		info, err := root.Lstat(name)
		if gone(err) || err == nil && owner(info) != os.Geteuid() {
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
