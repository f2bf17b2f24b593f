package fetch

import (
	"os"
	"path/filepath"
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
	j.sweep()
	if err := os.RemoveAll(j.stage); err != nil {
		return err
	}
	return os.MkdirAll(j.stage, 0o700)
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
