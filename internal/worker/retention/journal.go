package retention

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// journalDir holds the journals of all workers, below the working directory.
const journalDir = ".tdf/.kept"

// A worker begins a new file of its journal after this time, or when the file has this size. So no file with the double
// age is still in use, and the files become free one after the other.
const (
	segmentTime  = time.Hour
	segmentBytes = 1 << 20
)

// An entry is a line of a journal. It names a file or directory that a worker has made, so that Apply may remove it.
//
// Inode and Born identify the file: another file of that name is not the worker's. The device is left out, because
// its number may change when the machine starts again.
type entry struct {
	Round string `json:"round"`          // the same for all files of one execution of a round
	Base  string `json:"base,omitempty"` // see [Split]; "" is the working directory
	Path  string `json:"path"`           // below Base
	Own   int    `json:"own,omitempty"`  // how many directories at the end of Path were made for the task
	identity
}

// An identity tells a file from other files that have, or had, the same name.
type identity struct {
	Inode uint64 `json:"inode"`
	Born  int64  `json:"born,omitempty"` // when the file was made; 0 if the file system does not say so
}

// A Journal records the files that a worker keeps. Several goroutines may call its methods.
type Journal struct {
	dir string // the working directory

	mu    sync.Mutex
	file  *os.File // nil until Add needs it
	begun time.Time
	size  int
}

// NewJournal returns the journal of a worker with the working directory dir. Add makes its files.
func NewJournal(dir string) *Journal { return &Journal{dir: dir} }

// Add records a file or directory that this worker has made. Without the record, Apply never removes it.
//
// The name is the file's name in the open directory dir. The configured file name is pattern, and fill replaces its
// placeholders. All files of one execution of a round have the same value of round. A file that rounds share is not
// recorded, because it never counts as old.
func (j *Journal) Add(round, pattern string, fill func(string) string, dir *os.File, name string) error {
	if IsShared(pattern) {
		return nil
	}
	base, below := Split(j.dir, pattern)
	below = filepath.Dir(below)
	e := entry{Round: round, Path: filepath.Join(fill(below), name), Own: ownDirs(below)}
	if base != j.dir {
		e.Base = base
	}
	return j.add(e, dir, name)
}

// add completes an entry, and writes it.
func (j *Journal) add(e entry, dir *os.File, name string) (err error) {
	if e.identity, err = identify(int(dir.Fd()), name); err != nil {
		return &os.PathError{Op: "stat", Path: filepath.Join(dir.Name(), name), Err: err}
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return j.write(append(line, '\n'))
}

func (j *Journal) write(line []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.open(); err != nil {
		return err
	}
	n, err := j.file.Write(line)
	j.size += n
	if err != nil {
		j.close() // the line may be incomplete
	}
	return err
}

// open makes sure that the journal has a file to which it may add lines.
func (j *Journal) open() error {
	if j.file != nil && time.Since(j.begun) < segmentTime && j.size < segmentBytes && isNamed(j.file) {
		return nil
	}
	j.close()
	dir := filepath.Join(j.dir, journalDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, fmt.Sprintf("%d-*", time.Now().Unix())) // its mode is 0600
	if err != nil {
		return err
	}
	j.file, j.begun, j.size = f, time.Now(), 0
	return nil
}

// isNamed reports whether the file still has exactly one name, so that no one has removed it.
func isNamed(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 1
}

// Close closes the journal's file. A later Add begins a new one.
func (j *Journal) Close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.close()
}

func (j *Journal) close() {
	if j.file != nil {
		j.file.Close()
		j.file = nil
	}
}
