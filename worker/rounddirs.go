package worker

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"github.com/tdf-framework/tdf/internal/worker/rounddir"
	"github.com/tdf-framework/tdf/internal/worker/secrets"
)

// ownDir is the worker's own directory beside the programs. Programs may create it before the worker does.
const ownDir = ".tdf"

// roundsDir holds the directories of rounds, below the working directory. The name of a program never begins with a
// dot, so no program's directory beside roundsDir can have this name.
const roundsDir = ownDir + "/.rounds"

// rounds returns the directory of this process's rounds.
func (w *Worker) rounds() string { return filepath.Join(w.roundsOf(w.name), processID) }

// processID is a directory of this process. A later process of the same name gets another directory, so nobody who
// removes leftovers of this process touches the rounds of that process.
var processID = fmt.Sprintf("p%08x", rand.Uint32())

// roundsOf returns the directory of the rounds of all processes with a worker's name.
func (w *Worker) roundsOf(name string) string {
	return filepath.Join(w.cfg.Directory, roundsDir, name+w.hashOfNamespace())
}

// hashOfNamespace is a part of the name of the rounds' directory, since a worker of another namespace may have the same
// name and the same working directory. Over HTTP, so may a worker with another token.
func (w *Worker) hashOfNamespace() string {
	h := fnv.New32a()
	if w.cfg.API.URL != "" {
		fmt.Fprintf(h, "%s %s %s", w.cfg.API.URL, w.cfg.API.TokenFile, w.cfg.Namespace)
	} else {
		fmt.Fprintf(h, "%s %d %s", w.cfg.Redis.Addr(), w.cfg.Redis.DB, w.cfg.Namespace)
	}
	return fmt.Sprintf("-%08x", h.Sum32())
}

// dirsMade counts the directories of rounds. All workers of this process share the count, so that a directory's name
// never returns while this process runs.
var dirsMade atomic.Int64

// takeDir returns a directory for a round. If a program left its directory untouched, a later round gets that
// directory.
func (s *supervisor) takeDir(slot int, before rounddir.Before, secret *secrets.Secrets) (*rounddir.Dir, error) {
	s.mu.Lock()
	n := len(s.dirs)
	var dir *rounddir.Dir
	if n > 0 {
		dir, s.dirs = s.dirs[n-1], s.dirs[:n-1]
	}
	s.mu.Unlock()
	if dir != nil {
		if again, err := dir.Again(before, secret); err == nil {
			return again, nil
		}
		_ = dir.Remove()
	}
	s.lockRounds()
	path := filepath.Join(s.rounds(), strconv.FormatInt(dirsMade.Add(1), 10))
	return rounddir.Create(path, before, s.owner(slot), s.roundLimits(), secret)
}

func (w *Worker) roundLimits() rounddir.Limits {
	return rounddir.Limits{Checkpoint: w.cfg.MaxCheckpoint, Result: w.cfg.MaxResult, Updates: w.cfg.MaxUpdates}
}

// fewEntries is the largest number of entries that a worker removes before it reports the round. One call of Redis can
// then report the round and claim the slot's next task.
const fewEntries = 100

// putDir keeps an untouched directory for a later round, and removes any other. A round in this process may have left a
// goroutine behind, which still knows the directory. So putDir always removes the directory of a round in this process.
//
// putDir returns false if the directory has so many entries that the report must not wait for the removal.
func (s *supervisor) putDir(dir *rounddir.Dir) bool {
	if s.inProcess() || !dir.Untouched() {
		n := 0
		return dir.RemoveUntil(func() bool { n++; return n > fewEntries }) == nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirs = append(s.dirs, dir)
	return true
}

func (s *supervisor) removeDirs() {
	for _, dir := range s.dirs {
		_ = dir.Remove()
	}
	s.unlockRounds()
	s.tidy()
}

// sweep ends the processes and removes the directories that a killed worker of this name left behind. If ctx ends
// because another worker has taken the name, the directories stay, because they may belong to that worker.
func (w *Worker) sweep(ctx context.Context) {
	dir := w.roundsOf(w.name)
	if n := w.endLeftovers(ctx, dir+string(filepath.Separator), w.log); n > 0 {
		w.log.Warn("ended processes that an earlier worker of this name had left running", "processes", n)
	}
	if nameTaken(context.Cause(ctx)) {
		return
	}
	for _, process := range subdirectories(dir) {
		w.salvageOutputs(w.name, filepath.Join(dir, process))
	}
	if err := rounddir.RemoveAll(dir); err != nil {
		w.log.Warn("directories of an earlier worker of this name cannot be removed", "directory", dir, "error", err)
	}
}

// tidy removes the directories of rounds, if they are empty.
func (w *Worker) tidy() {
	for dir := w.rounds(); len(dir) > len(w.cfg.Directory); dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil {
			return
		}
	}
}

// owner returns the user that programs of a slot run as. nil means the worker's user.
func (s *supervisor) owner(slot int) *rounddir.Owner {
	if s.processes == nil {
		return nil
	}
	c := s.processes.Credential(slot)
	if c == nil {
		return nil
	}
	return &rounddir.Owner{UID: int(c.Uid), GID: int(c.Gid)}
}
