package fetch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// The modification time of a program's record is the time of its last use. The start of a round updates it, at most
// once per touchEvery.
const touchEvery = time.Hour

// UsedFor is the time for which a program counts as in use after its last recorded use.
const UsedFor = 2 * touchEvery

// Touch records a use of a fetched program. Call it once an hour while a round runs: otherwise another worker that
// shares the directory may remove the program. Best effort.
func Touch(dir, program string) {
	if checkProgram(program) == nil {
		_ = touch(filepath.Join(dir, program, recordName))
	}
}

// markUsed records a use of the program in dir. It returns false if the program is being removed.
func markUsed(dir string) bool {
	name := filepath.Join(dir, recordName)
	info, err := os.Lstat(name)
	if err == nil && !recent(info.ModTime()) {
		err = touch(name)
	}
	return !errors.Is(err, fs.ErrNotExist)
}

// recent reports whether t is less than touchEvery ago. A time in the future is not recent: the clock was set back.
func recent(t time.Time) bool {
	age := time.Since(t)
	return age >= 0 && age < touchEvery
}

// touch does not follow links, because programs can write to their directory.
func touch(name string) error {
	now := unix.NsecToTimespec(time.Now().UnixNano())
	return unix.UtimesNanoAt(unix.AT_FDCWD, name, []unix.Timespec{now, now}, unix.AT_SYMLINK_NOFOLLOW)
}
