package fetch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// owner is a file's user id; -1 where the system does not say.
func owner(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return -1
}

// names is how many names a file has.
func names(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Nlink)
	}
	return 1
}

// trusted says whether what this is belongs to the worker's own user, to root, or to the user as whom programs run.
func (j *job) trusted(info fs.FileInfo) bool {
	uid := owner(info)
	return uid == 0 || uid == os.Geteuid() || j.OtherUser && uid == j.User
}

// checkPlanted refuses a program that anyone may have put there: one of another user, or a link of
// his, where everybody can write to the working directory. Elsewhere, who can write there is trusted.
func (j *job) checkPlanted() error {
	working, err := os.Stat(j.Dir)
	if err != nil || working.Mode()&0o002 == 0 {
		return err
	}
	info, err := os.Lstat(j.dir)
	if err != nil || j.trusted(info) {
		return err
	}
	return fmt.Errorf("./%s belongs to user %d, and everybody can write to the working directory; remove it or give it to the worker's user (chown), and close the directory (chmod o-w)",
		j.program, owner(info))
}

// checkTarget refuses a place that is no directory, or one whose owner could exchange what is put there.
func (j *job) checkTarget() error {
	info, err := os.Lstat(j.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("./%s is in the way: it is not a directory", j.program)
	case !j.trusted(info):
		return fmt.Errorf("./%s belongs to user %d; remove it, or give it to the worker's user (chown)", j.program, owner(info))
	}
	return nil
}
