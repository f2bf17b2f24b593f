package fetch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// The modification time of a program's record is the time of the program's last use. A worker updates this time when a
// round starts, at most once per touchEvery.
const touchEvery = time.Hour

// UsedFor is the time for which [Remove] keeps a program after its last recorded use.
const UsedFor = 2 * touchEvery

// Touch records a use of a fetched program. Call Touch once an hour while a round runs. Without these calls, another
// worker in the same working directory may remove the program. Touch ignores errors.
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

// recent reports whether t is less than touchEvery ago. A time in the future, which can occur after the clock was set
// back, is not recent.
func recent(t time.Time) bool {
	age := time.Since(t)
	return age >= 0 && age < touchEvery
}

// touch sets a file's modification time to now. It does not follow links, because a program can replace the file by a
// link.
func touch(name string) error {
	now := unix.NsecToTimespec(time.Now().UnixNano())
	return unix.UtimesNanoAt(unix.AT_FDCWD, name, []unix.Timespec{now, now}, unix.AT_SYMLINK_NOFOLLOW)
}
