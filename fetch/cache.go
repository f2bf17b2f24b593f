package fetch

import (
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Cache remembers which programs were ready, so that [Fetcher.Ready] need not check them again for each round. The
// zero Cache is ready for use. Fetchers of the same working directory may share a Cache, even if their programs run as
// different users.
type Cache struct {
	mu    sync.Mutex
	known map[question]answer
}

// trust is the time for which Ready uses an answer of the Cache. Within this time, Ready checks only that run.sh and
// the program's record have not changed.
const trust = time.Second

// maxAnswers bounds the memory of a Cache.
const maxAnswers = 1000

type question struct {
	program, source string
	user            int
}

type answer struct {
	program        Program
	given          time.Time
	script, record unix.Stat_t
	hasRecord      bool
}

// get returns the program if it was ready less than trust ago, and if its run.sh and its record have not changed.
func (c *Cache) get(q question) (Program, bool) {
	c.mu.Lock()
	a, ok := c.known[q]
	c.mu.Unlock()
	if !ok || time.Since(a.given) > trust {
		return Program{}, false
	}
	now := answer{program: a.program}
	return a.program, now.look() && now.hasRecord == a.hasRecord && isSameFile(now.script, a.script) &&
		isSameFile(now.record, a.record)
}

// prepare returns an answer with the present state of the files. Call it before the files are checked.
func (c *Cache) prepare(dir string) (a answer, ok bool) {
	a = answer{program: Program{Dir: dir}, given: time.Now()}
	return a, a.look()
}

func (c *Cache) put(q question, a answer, p Program) {
	a.program = p
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxAnswers {
		c.known = map[question]answer{}
	}
	c.known[q] = a
}

// look reads the present state of the files.
func (a *answer) look() bool {
	if unix.Stat(filepath.Join(a.program.Dir, runScript), &a.script) != nil {
		return false
	}
	err := unix.Lstat(filepath.Join(a.program.Dir, recordName), &a.record)
	a.hasRecord = err == nil
	return err == nil || err == unix.ENOENT
}

// isSameFile reports whether a file has not changed.
func isSameFile(a, b unix.Stat_t) bool {
	return a.Dev == b.Dev && a.Ino == b.Ino && a.Mode == b.Mode && a.Size == b.Size && a.Mtim == b.Mtim &&
		a.Ctim == b.Ctim
}
