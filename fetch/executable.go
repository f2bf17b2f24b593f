package fetch

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ensureExecutable makes run.sh executable for the programs' user.
func (j *job) ensureExecutable(path string, mode fs.FileMode) error {
	if j.executableMode(path, mode) == mode.Perm() {
		return nil
	}
	err := j.makeExecutable(path)
	if mode&0o111 != 0 {
		return nil // the programs' user may be able to execute run.sh nevertheless; if not, the start of the program fails
	}
	return err
}

// executableMode returns the mode that run.sh needs. The caller passes the present mode of run.sh. If OtherUser is set,
// this process cannot test whether the programs' user may execute run.sh. In this case, the returned mode lets everyone
// who can read run.sh also execute it.
func (j *job) executableMode(path string, mode fs.FileMode) fs.FileMode {
	now := mode.Perm()
	switch {
	case now&0o111 == 0:
		return 0o755
	case j.OtherUser || unix.Access(path, unix.X_OK) != nil:
		return now | now&0o444>>2
	}
	return now
}

var errLinkNotExecutable = errors.New("run.sh is a symbolic or hard link to a file that is not executable; make that file executable (chmod +x)")

// makeExecutable changes the mode of run.sh. If run.sh is a symbolic link or has other hard links, makeExecutable
// returns an error, because the file may not belong to the program.
func (j *job) makeExecutable(path string) error {
	f, info, err := regular(os.OpenFile(path, readFlags, 0))
	switch {
	case errors.Is(err, unix.ELOOP):
		return errLinkNotExecutable
	case err != nil:
		return err
	}
	defer f.Close()
	if hardLinks(info) > 1 {
		return errLinkNotExecutable
	}
	return f.Chmod(j.executableMode(path, info.Mode()))
}
