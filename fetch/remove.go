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

// removedName is the name of the record's file while the program is being removed. A directory with a journal but
// without a record is not a program.
const removedName = reservedPrefix + "removed.json"

// Remove removes a fetched program that was last used before olderThan. It removes the fetched files, the files
// that setup.sh created, and run.sh. It keeps the files that runs of the program created, and the directories of these
// files. Remove keeps a program that was used within [UsedFor], a program that is being fetched, a program that has
// copies, and a directory made by hand. A copy is removed like a program.
//
// After an interrupted removal, the next Fetch fetches the program again, or the next Remove removes the remaining
// files (docs/programs.md, "The record").
func Remove(ctx context.Context, dir, program string, olderThan time.Time) (removed bool, err error) {
	if err := checkProgram(program); err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, context.Cause(ctx)
	}
	if latest := time.Now().Add(-UsedFor); olderThan.After(latest) {
		olderThan = latest
	}
	removed, err = remove(dir, program, olderThan)
	if err != nil {
		err = fmt.Errorf("remove program %s: %w", program, err)
	}
	return removed, err
}

func remove(dir, program string, olderThan time.Time) (bool, error) {
	if err := makePrivate(dir, locksDir, 0o700); err != nil {
		return false, err
	}
	l, err := tryLock(filepath.Join(dir, locksDir, program))
	if l == nil || err != nil {
		return false, err
	}
	defer l.Close()
	root, err := openProgram(dir, program)
	if gone(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer root.Close()
	if len(copiesOf(dir, program)) > 0 {
		return false, nil // they may have absolute paths of the original
	}
	removed, err := removeFrom(root, olderThan)
	if removed && prune(root, ".", 0) {
		// fails if a link has replaced the directory, or if it contains new files
		_ = unix.Rmdir(filepath.Join(dir, program))
	}
	return removed, err
}

func removeFrom(root *os.Root, olderThan time.Time) (bool, error) {
	name, info, err := recordIn(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.ModTime().Before(olderThan):
		return false, nil
	}
	o, err := journalIn(root)
	if err != nil {
		return false, err
	}
	if free, err := takeRecord(root, name, info); !free || err != nil {
		return false, err
	}
	if err := o.removeFiles(root); err != nil {
		return false, err
	}
	return true, removeOwn(root)
}

// takeRecord renames the record, so that no worker starts the program. A worker that does not find the record waits for
// the lock. The caller has read the record's info earlier, and passes it as before. If a worker has used the program
// since that time, takeRecord restores the name and returns false.
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

// maxPruned is the maximum depth of directories that prune visits: that of the longest name in an archive.
const maxPruned = maxPathBytes / 2

// prune removes all directories below dir that contain no files. It reports whether dir is empty afterwards.
func prune(root *os.Root, dir string, depth int) bool {
	entries, err := fs.ReadDir(root.FS(), dir)
	empty := err == nil && depth < maxPruned
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if !e.IsDir() || depth >= maxPruned || !prune(root, name, depth+1) || root.Remove(name) != nil {
			empty = false
		}
	}
	return empty
}
