package worker

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf/internal/worker/process"
	"github.com/tdf-framework/tdf/internal/worker/rounddir"
)

// A worker locks the directory of its rounds while it runs. The kernel releases the lock when the process ends. So the
// other workers of the working directory know that a worker is gone, and can remove what it left: its name may never
// return.

const lockFile = "lock" // in the directory of a process's rounds

// A roundsLock is this process's lock of its own directory.
type roundsLock struct {
	mu   sync.Mutex
	file *os.File
}

// lockRounds makes and locks the directory of the rounds. Without a lock, other workers leave the directory alone, so
// errors do no harm.
func (w *Worker) lockRounds() {
	w.own.mu.Lock()
	defer w.own.mu.Unlock()
	dir := w.rounds()
	if f := w.own.file; f != nil {
		if isFileAt(f, filepath.Join(dir, lockFile)) {
			return
		}
		f.Close() // a program has removed the file
		w.own.file = nil
	}
	if os.MkdirAll(dir, 0o755) != nil {
		return
	}
	f, err := os.CreateTemp(dir, lockFile+"-*")
	if err != nil {
		return
	}
	// The file gets its name after the lock, so that no one finds it unlocked.
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil ||
		os.Rename(f.Name(), filepath.Join(dir, lockFile)) != nil {
		_ = os.Remove(f.Name())
		f.Close()
		return
	}
	w.own.file = f
}

func (w *Worker) unlockRounds() {
	w.own.mu.Lock()
	defer w.own.mu.Unlock()
	if w.own.file != nil {
		_ = os.Remove(filepath.Join(w.rounds(), lockFile))
		w.own.file.Close()
		w.own.file = nil
	}
}

// goneBound bounds how long the removal of old files waits for Redis.
const goneBound = time.Minute

// removeLeftovers removes what killed workers of this namespace have left in the working directory, and keeps the
// output that they have not delivered. A worker is gone if Redis has no live worker of its name, and if the kernel says
// that no process holds its lock. The second condition protects workers that do not reach Redis, and the first protects
// workers on file systems that do not share locks between machines.
func (w *Worker) removeLeftovers(ctx context.Context) error {
	names := w.namesWithRounds()
	if len(names) == 0 {
		return nil
	}
	asking, end := context.WithTimeout(ctx, goneBound)
	defer end()
	gone, err := w.broker.Gone(asking, names)
	if err != nil {
		return err
	}
	for _, name := range names {
		for _, id := range subdirectories(w.roundsOf(name)) {
			if slices.Contains(gone, name) && ctx.Err() == nil {
				err = errors.Join(err, w.removeLeftover(ctx, name, filepath.Join(w.roundsOf(name), id)))
			}
		}
		_ = os.Remove(w.roundsOf(name)) // fails unless it is empty
	}
	return err
}

// namesWithRounds returns the names of the other workers of this namespace that have directories of rounds.
func (w *Worker) namesWithRounds() (names []string) {
	for _, dir := range subdirectories(filepath.Join(w.cfg.Directory, roundsDir)) {
		if name, ours := strings.CutSuffix(dir, w.hashOfNamespace()); ours && name != w.name && CheckName(name) == nil {
			names = append(names, name)
		}
	}
	return names
}

func subdirectories(dir string) (names []string) {
	entries, _ := os.ReadDir(dir) // an error means that there are none, or that they belong to another user
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// removeLeftover removes the directory of a process's rounds, unless the process may still run.
func (w *Worker) removeLeftover(ctx context.Context, name, dir string) error {
	lock, err := lockOfGone(filepath.Join(dir, lockFile))
	if lock == nil {
		return err
	}
	defer lock.Close()
	n := w.endLeftovers(ctx, dir+string(filepath.Separator), w.log)
	w.salvageOutputs(name, dir)
	if err := rounddir.RemoveAll(dir); err != nil {
		return err
	}
	w.log.Info("removed what a killed worker had left", "of", name, "directory", dir, "processes", n)
	return nil
}

// RemoveAbandoned removes working directories whose workers were killed, with the processes that these left. pattern
// matches directories of this user on this machine that a process makes for itself and removes at its end. It skips a
// directory unless it has locks of workers, and no process holds one of them.
func RemoveAbandoned(ctx context.Context, pattern string, log *slog.Logger) {
	dirs, _ := filepath.Glob(pattern)
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || !isAbandoned(dir) {
			continue
		}
		n := process.Sweep(ctx, dir+string(filepath.Separator), log)
		err = rounddir.RemoveAll(dir)
		if err != nil {
			log.Warn("the directory of a killed process cannot be removed", "directory", dir, "error", err)
			continue
		}
		log.Info("removed the directory of a killed process", "directory", dir, "processes", n)
	}
}

func isAbandoned(dir string) bool {
	locks, _ := filepath.Glob(filepath.Join(escapeGlob(dir), roundsDir, "*", "*", lockFile))
	for _, path := range locks {
		lock, _ := lockOfGone(path)
		if lock == nil {
			return false
		}
		defer lock.Close()
	}
	return len(locks) > 0
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// lockOfGone takes the lock of a process that is gone. It returns nil if the process may still run: if it holds the
// lock, or if there is no lock of this user.
func lockOfGone(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var info unix.Stat_t
	err = unix.Fstat(int(f.Fd()), &info)
	if err != nil || info.Mode&unix.S_IFMT != unix.S_IFREG || int(info.Uid) != os.Geteuid() ||
		unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil || !isFileAt(f, path) {
		f.Close()
		return nil, err
	}
	return f, nil
}

// isFileAt reports whether a file still has the given path.
func isFileAt(f *os.File, path string) bool {
	info, err := f.Stat()
	now, err2 := os.Lstat(path)
	return err == nil && err2 == nil && os.SameFile(info, now)
}
