package fetch

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// executable sees to it that those who are to run run.sh can execute it. A mode that is good for
// somebody may not be so for us, and for another user we cannot ask: then whoever can read it may
// execute it, too.
func (j *job) executable(path string, mode fs.FileMode) error {
	if j.wanted(path, mode) == mode.Perm() {
		return nil
	}
	err := j.makeExecutable(path)
	if mode&0o111 != 0 {
		return nil // it may be somebody else's, and good; if it is not, its start says why
	}
	return err
}

// wanted is the mode that run.sh has to have, given the one that it has.
func (j *job) wanted(path string, mode fs.FileMode) fs.FileMode {
	now := mode.Perm()
	switch {
	case now&0o111 == 0:
		return 0o755
	case j.OtherUser || unix.Access(path, unix.X_OK) != nil:
		return now | now&0o444>>2
	}
	return now
}

var errElsewhere = errors.New("run.sh is a link, symbolic or hard, to a file that nobody may execute; make that file executable (chmod +x)")

// makeExecutable changes run.sh itself. What a link leads to, or what has a name elsewhere, may be
// a file that is none of this program's.
func (j *job) makeExecutable(path string) error {
	f, info, err := regular(os.OpenFile(path, reading, 0))
	switch {
	case errors.Is(err, unix.ELOOP):
		return errElsewhere
	case err != nil:
		return err
	}
	defer f.Close()
	if names(info) > 1 {
		return errElsewhere
	}
	return f.Chmod(j.wanted(path, info.Mode()))
}
