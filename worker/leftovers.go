package worker

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tdf-framework/tdf/worker/rounddir"
	"github.com/tdf-framework/tdf/worker/secrets"
)

// ownDir is what the worker has for itself in the working directory, beside the programs: these make it, too.
const ownDir = ".tdf"

// roundsDir is where the rounds' directories are, below the working directory. Beside it are
// those of programs that are fetched; no program's name begins with a dot.
const roundsDir = ownDir + "/.rounds"

// rounds is the directory of this worker's rounds: other workers may share the working directory,
// and have the same name in another namespace, or in that of another Redis.
func (w *Worker) rounds() string {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s %d %s", w.cfg.Redis.Addr(), w.cfg.Redis.DB, w.cfg.Namespace)
	return filepath.Join(w.cfg.Directory, roundsDir, fmt.Sprintf("%s-%08x", w.name, h.Sum32()))
}

// takeDir returns a round's directory. Those that programs have not touched are used again.
func (s *session) takeDir(slot int, before rounddir.Before, secret *secrets.Secrets) (*rounddir.Dir, error) {
	s.mu.Lock()
	n := len(s.dirs)
	var dir *rounddir.Dir
	if n > 0 {
		dir, s.dirs = s.dirs[n-1], s.dirs[:n-1]
	}
	s.made++
	path := filepath.Join(s.rounds(), strconv.Itoa(s.made))
	s.mu.Unlock()
	if dir != nil {
		if again, err := dir.Again(before, secret); err == nil {
			return again, nil
		}
		_ = dir.Remove()
	}
	limits := rounddir.Limits{Checkpoint: s.cfg.MaxCheckpoint, Result: s.cfg.MaxResult, Updates: s.cfg.MaxUpdates}
	return rounddir.Create(path, before, s.owner(slot), limits, secret)
}

func (s *session) putDir(dir *rounddir.Dir) {
	if !dir.Untouched() {
		_ = dir.Remove() // what cannot be removed is swept at the next start
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirs = append(s.dirs, dir)
}

func (s *session) removeDirs() {
	for _, dir := range s.dirs {
		_ = dir.Remove()
	}
	s.tidy()
}

// sweep ends and removes what an earlier worker of this name left behind that was killed. If ctx ends
// because the name is another worker's now, the directories may be that worker's, and stay.
func (w *Worker) sweep(ctx context.Context) {
	dir := w.rounds()
	if n := w.endLeftovers(ctx, dir+string(filepath.Separator), w.log); n > 0 {
		w.log.Warn("ended what an earlier worker of this name had left running", "processes", n)
	}
	if isLost(context.Cause(ctx)) {
		return
	}
	if err := rounddir.RemoveAll(dir); err != nil {
		w.log.Warn("what an earlier worker of this name has left cannot be removed", "directory", dir, "error", err)
	}
}

// tidy removes the directories of rounds that are empty.
func (w *Worker) tidy() {
	for dir := w.rounds(); len(dir) > len(w.cfg.Directory); dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil {
			return
		}
	}
}

// hold says that this process starts children of its own until the function it returns is called.
func (s *session) hold() (release func()) {
	if script, ok := s.Runner.(*script); ok {
		return script.host.Hold()
	}
	return func() {}
}

// owner is the user that programs of a slot run as, if that is another one.
func (s *session) owner(slot int) *rounddir.Owner {
	if script, ok := s.Runner.(*script); ok {
		if uid, gid, other := script.host.Credentials(slot); other {
			return &rounddir.Owner{UID: uid, GID: gid}
		}
	}
	return nil
}
