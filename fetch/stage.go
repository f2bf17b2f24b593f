package fetch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Below the working directory. No program can have this name: it begins with a dot.
const (
	privateDir = ".tdf"
	stagingDir = privateDir + "/staging"
	locksDir   = privateDir + "/locks"
)

// In a staging directory.
const (
	stagedPayload = "payload" // what came
	stagedTree    = "tree"    // what it became
	stagedRsync   = "rsync"   // where rsync puts it
	stagedFile    = "file"    // a record or journal, before it is renamed into place
)

func (j *job) staged(name string) string { return filepath.Join(j.stage, name) }

// openStage makes the staging directory anew and sweeps what others left. The lock is held.
func (j *job) openStage() error {
	if err := makePrivate(j.Dir, stagingDir); err != nil {
		return err
	}
	j.sweep()
	if err := os.RemoveAll(j.stage); err != nil {
		return err
	}
	return os.Mkdir(j.stage, 0o700)
}

// makePrivate makes a directory of .tdf/ that no other user can enter: who can open a lock can hold it.
// It closes a directory that an earlier release left open. Others may use .tdf/ itself: rounds are there.
func makePrivate(working, name string) error {
	if err := os.MkdirAll(filepath.Join(working, privateDir), 0o755); err != nil {
		return err
	}
	name = filepath.Join(working, name)
	if err := os.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
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
		_ = d.Chown(0, -1) // in vain where a file server has another user for root
	}
	if info.Mode().Perm() == 0o700 {
		return nil
	}
	return d.Chmod(0o700)
}

func (j *job) closeStage() {
	if err := os.RemoveAll(j.stage); err != nil {
		j.Log.Warn("a staging directory stays behind until the next fetch", "dir", j.stage, "err", err)
	}
}

// sweep removes the staging directories whose lock is free: their process died. A lock that is
// taken, or cannot be told, leaves its directory for another time.
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
			j.Log.Info("swept what a dead worker left of a fetch", "program", e.Name())
		}
		l.Close()
	}
}
