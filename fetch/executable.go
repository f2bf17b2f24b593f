package fetch

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// executable sees to it that those who are to run run.sh can execute it. A mode that is good for
// somebody may not be so for us, and for another user we cannot ask: then whoever can read it may
// execute it, too.
func (j *job) executable(path string, mode fs.FileMode) error {
	now := mode.Perm()
	wanted := now
	switch {
	case now&0o111 == 0:
		wanted = 0o755
	case j.OtherUser || unix.Access(path, unix.X_OK) != nil:
		wanted |= now & 0o444 >> 2
	}
	if wanted == now {
		return nil
	}
	err := os.Chmod(path, wanted)
	if now&0o111 != 0 {
		return nil // it may be somebody else's, and good; if it is not, its start says why
	}
	return err
}
