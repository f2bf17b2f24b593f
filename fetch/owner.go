package fetch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// A User is another user than that of this process, as which programs run. A Fetcher trusts the files of this user, and
// lets everyone who can read run.sh execute it. It opens what a source names with the rights of this user, because a
// task may name any file: rsync and ssh run as this user.
type User struct {
	syscall.Credential
	Env []string // HOME, USER and LOGNAME
}

// id returns the number of the user, or -1 for the user of this process.
func (u *User) id() int {
	if u == nil {
		return -1
	}
	return int(u.Uid)
}

// owns reports whether a file belongs to the user as which programs run.
func (u *User) owns(info fs.FileInfo) bool {
	if u == nil {
		return owner(info) == os.Geteuid()
	}
	return owner(info) == u.id()
}

// chown gives a file to the user. It follows no link.
func (u *User) chown(name string) error {
	if u == nil {
		return nil
	}
	return os.Lchown(name, u.id(), int(u.Gid))
}

// owner returns a file's user id, or -1 if the system does not report it.
func owner(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return -1
}

// hardLinks returns the number of a file's hard links.
func hardLinks(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Nlink)
	}
	return 1
}

// trusted reports whether a file belongs to this process's user, to root, or to the programs' user.
func (j *job) trusted(info fs.FileInfo) bool {
	uid := owner(info)
	return uid == 0 || uid == os.Geteuid() || j.User.owns(info)
}

// checkPlanted checks a program in a working directory to which everyone can write. It returns an error if an untrusted
// user owns the program's directory, or a link in its place, because that user may have created it.
func (j *job) checkPlanted() error {
	working, err := os.Stat(j.Dir)
	if err != nil || working.Mode()&0o002 == 0 {
		return err
	}
	info, err := os.Lstat(j.dir)
	if err != nil || j.trusted(info) {
		return err
	}
	return fmt.Errorf("./%s belongs to user %d, and everyone can write to the working directory; remove ./%[1]s or "+
		"give it to the worker's user (chown), and close the working directory (chmod o-w)",
		j.program, owner(info))
}

// checkTarget returns an error if an untrusted user owns the program's directory, because that user could exchange
// files in it.
func (j *job) checkTarget() error {
	info, err := os.Lstat(j.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("./%s is not a directory; remove it", j.program)
	case !j.trusted(info):
		return fmt.Errorf("./%s belongs to user %d; remove it, or give it to the worker's user (chown)", j.program,
			owner(info))
	}
	return nil
}
