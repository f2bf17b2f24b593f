package fetch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Directories below the working directory. They cannot be programs, because a program's name does not begin with a dot.
const (
	privateDir = ".tdf"
	stagingDir = privateDir + "/staging"
	locksDir   = privateDir + "/locks"
)

// Names in a staging directory.
const (
	stagedPayload = "payload" // the file with the source's content
	stagedTree    = "tree"    // the directory with the unpacked files
	stagedRsync   = "rsync"   // the directory into which rsync copies
	stagedFile    = "file"    // a record or journal, before it is renamed into place
)

func (j *job) staged(name string) string { return filepath.Join(j.stage, name) }

// openStage creates an empty staging directory. It also removes the staging directories of dead processes. The caller
// must hold the program's lock.
func (j *job) openStage() error {
	if err := makePrivate(j.Dir, stagingDir, 0o711); err != nil {
		return err
	}
	j.sweep()
	if err := os.RemoveAll(j.stage); err != nil {
		return err
	}
	return os.Mkdir(j.stage, 0o711)
}

// makePrivate creates a directory in .tdf/ with a mode. If the directory has another mode, makePrivate changes it. With
// 0700, other users cannot hold locks. With 0711, rsync can reach the directory into which it copies. Other users may
// enter .tdf/ itself, because rounds use it.
func makePrivate(working, name string, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Join(working, privateDir), 0o755); err != nil {
		return err
	}
	name = filepath.Join(working, name)
	if err := os.Mkdir(name, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	d, err := os.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	info, err := d.Stat()
	if err != nil {
		return err
	}
	if uid := owner(info); uid != os.Geteuid() && os.Geteuid() == 0 {
		_ = d.Chown(0, -1) // fails on file servers that map root to another user
	}
	if info.Mode().Perm() == mode {
		return nil
	}
	return d.Chmod(mode)
}

func (j *job) closeStage() {
	if err := os.RemoveAll(j.stage); err != nil {
		j.Log.Warn("staging directory not removed, the next fetch tries again", "dir", j.stage, "err", err)
	}
}

// sweep removes the staging directories of dead processes. If no process holds a directory's lock, its process is dead.
func (j *job) sweep() {
	entries, _ := os.ReadDir(filepath.Join(j.Dir, stagingDir))
	for _, e := range entries {
		if e.Name() == j.program {
			continue
		}
		l, err := tryLock(filepath.Join(j.Dir, locksDir, e.Name()))
		if err != nil || l == nil {
			continue
		}
		if err := os.RemoveAll(filepath.Join(j.Dir, stagingDir, e.Name())); err == nil {
			j.Log.Info("staging directory of a dead worker removed", "program", e.Name())
		}
		l.Close()
	}
}
