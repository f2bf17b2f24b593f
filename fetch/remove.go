package fetch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// removedName is what a record is called from the moment on that its program is being removed:
// without a record, but with a journal, nobody takes it for a program.
const removedName = reservedPrefix + "removed.json"

// Remove removes a program that was fetched and was last used before olderThan, and returns how
// many bytes of files that were. It removes what came, what setup.sh made, and run.sh; what runs
// left in the program's directory stays, and so does the directory then. A program that was used
// within [UsedFor], or that somebody is fetching, or a directory that was made by hand is left as it is.
//
// A removal that is interrupted leaves a program that is fetched anew before it runs again, and
// that the next Remove removes (docs/programs.md, "The record").
func Remove(ctx context.Context, dir, program string, olderThan time.Time) (removed bool, bytes int64, err error) {
	if err := checkProgram(program); err != nil {
		return false, 0, err
	}
	if err := ctx.Err(); err != nil {
		return false, 0, context.Cause(ctx)
	}
	if latest := time.Now().Add(-UsedFor); olderThan.After(latest) {
		olderThan = latest
	}
	removed, bytes, err = remove(dir, program, olderThan)
	if err != nil {
		err = fmt.Errorf("removing the program %s: %w", program, err)
	}
	return removed, bytes, err
}

func remove(dir, program string, olderThan time.Time) (bool, int64, error) {
	if err := makePrivate(dir, locksDir); err != nil {
		return false, 0, err
	}
	l, err := tryLock(filepath.Join(dir, locksDir, program))
	if l == nil || err != nil {
		return false, 0, err
	}
	defer l.Close()
	root, err := openProgram(dir, program)
	if gone(err) {
		return false, 0, nil
	}
	if err != nil {
		return false, 0, err
	}
	defer root.Close()
	removed, bytes, err := removeFrom(root, olderThan)
	if removed && prune(root, ".", 0) {
		_ = unix.Rmdir(filepath.Join(dir, program)) // not where it was replaced by a link, or filled again
	}
	return removed, bytes, err
}

func removeFrom(root *os.Root, olderThan time.Time) (bool, int64, error) {
	name, info, err := recordIn(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, 0, nil
	case err != nil:
		return false, 0, err
	case !info.ModTime().Before(olderThan):
		return false, 0, nil
	}
	o, err := journalIn(root)
	if err != nil {
		return false, 0, err
	}
	if free, err := takeRecord(root, name, info); !free || err != nil {
		return false, 0, err
	}
	bytes := o.bytes(root)
	if err := o.removeFiles(root); err != nil {
		return false, 0, err
	}
	return true, bytes, removeOwn(root)
}

// takeRecord takes the record away. Who is about to run the program has touched it before that,
// which then shows, or finds it gone and waits for the lock.
func takeRecord(root *os.Root, name string, before fs.FileInfo) (bool, error) {
	if name == removedName {
		return true, nil
	}
	if err := root.Rename(recordName, removedName); err != nil {
		return false, err
	}
	now, err := root.Lstat(removedName)
	if err == nil && now.ModTime().Equal(before.ModTime()) {
		return true, nil
	}
	return false, errors.Join(err, root.Rename(removedName, recordName))
}

// Deeper than programs may nest (max_program_depth) nothing is looked for.
const mostPruned = 100

// prune removes the directories that hold nothing but such, and says whether dir is one.
func prune(root *os.Root, dir string, depth int) bool {
	entries, err := fs.ReadDir(root.FS(), dir)
	empty := err == nil && depth < mostPruned
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if !e.IsDir() || depth >= mostPruned || !prune(root, name, depth+1) || root.Remove(name) != nil {
			empty = false
		}
	}
	return empty
}
