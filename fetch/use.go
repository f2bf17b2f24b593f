package fetch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// When a program was last used is the time of its record. It is brought up to date when a round
// begins, at most once in touchEvery.
const touchEvery = time.Hour

// UsedFor is how long a program counts as in use after its last use was written down: that
// happens once an hour at most, and a round goes on after it has begun.
const UsedFor = 2 * touchEvery

// Touch writes down that a program is used now, if it is one that was fetched. Who runs one for
// hours does so once an hour, so that nobody who shares the directory removes it.
func Touch(dir, program string) {
	if checkProgram(program) == nil {
		_ = touch(filepath.Join(dir, program, recordName)) // what cannot be written down is no reason not to run it
	}
}

// used writes down that the program in dir is used now. False: it is being removed.
func used(dir string) bool {
	name := filepath.Join(dir, recordName)
	info, err := os.Lstat(name)
	if err == nil && !recent(info.ModTime()) {
		err = touch(name)
	}
	return !errors.Is(err, fs.ErrNotExist)
}

// recent is not what lies in the future: a clock was set back, and nobody knows when it was used.
func recent(t time.Time) bool {
	age := time.Since(t)
	return age >= 0 && age < touchEvery
}

// touch follows no link: programs can write to their directory.
func touch(name string) error {
	now := unix.NsecToTimespec(time.Now().UnixNano())
	return unix.UtimesNanoAt(unix.AT_FDCWD, name, []unix.Timespec{now, now}, unix.AT_SYMLINK_NOFOLLOW)
}
