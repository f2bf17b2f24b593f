package fetch

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// tooLarge means that a program is too large to be copied.
func tooLarge(has any) error {
	return localError{fmt.Errorf("the program has %v; put its data elsewhere, or, if its rounds may share its "+
		"directory, add the file .tdfshared to it", has)}
}

// errTooLarge is the error where the file system cannot clone files.
var errTooLarge = tooLarge("more than 1 GiB, and its file system cannot clone files")

// A copier copies files from one directory to another. It follows no links. The programs' user may control either
// directory, so the copier opens each part of a path by itself.
type copier struct {
	ctx      context.Context
	from, to *os.File
	owner    *User  // the user to whom the copy belongs; nil means this process's user
	left     int64  // how many bytes may be copied; a clone counts as none
	noClones bool   // the file system cannot clone files
	skipped  string // a file that is neither a regular file, a directory nor a link

	path         string // the directory of the last file
	source, dest *os.File
}

func (c *copier) leave() {
	for _, f := range []*os.File{c.source, c.dest} {
		if f != nil {
			f.Close()
		}
	}
	c.source, c.dest, c.path = nil, nil, ""
}

func (c *copier) end() {
	c.leave()
	c.from.Close()
	c.to.Close()
}

// enter opens the directory of a file in both places.
func (c *copier) enter(dir string) (err error) {
	if c.source != nil && c.path == dir {
		return nil
	}
	c.leave()
	if c.source, err = openBelow(c.from, dir); err != nil {
		return err
	}
	if c.dest, err = openBelow(c.to, dir); err != nil {
		return err
	}
	c.path = dir
	return nil
}

// openBelow opens a directory below another one. It follows no link.
func openBelow(top *os.File, dir string) (*os.File, error) {
	at := top
	for part := range strings.SplitSeq(dir, "/") {
		fd, err := unix.Openat(int(at.Fd()), part, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if at != top {
			at.Close()
		}
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: dir, Err: err}
		}
		at = os.NewFile(uintptr(fd), part)
	}
	return at, nil
}

// copy copies one file, link or directory, but not the files in the directory. copied is false for a file of another
// kind.
func (c *copier) copy(name string, s stamp) (copied bool, err error) {
	if c.ctx.Err() != nil {
		return false, context.Cause(c.ctx)
	}
	if err := c.enter(path.Dir(name)); err != nil {
		return false, err
	}
	base := path.Base(name)
	switch s.kind() {
	case unix.S_IFDIR:
		err = c.makeDirectory(base)
	case unix.S_IFLNK:
		err = c.copyLink(base)
	case unix.S_IFREG:
		err = c.copyFile(base)
	default:
		c.skipped = name
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("copy %s: %w", name, err)
	}
	return true, nil
}

func (c *copier) makeDirectory(name string) error {
	err := unix.Mkdirat(int(c.dest.Fd()), name, 0o700)
	if err != nil || c.owner == nil {
		return err
	}
	return unix.Fchownat(int(c.dest.Fd()), name, c.owner.id(), int(c.owner.Gid), unix.AT_SYMLINK_NOFOLLOW)
}

// finishDirectory gives a directory the mode and the time of the original, after all its files are copied.
func (c *copier) finishDirectory(name string) error {
	if err := c.enter(path.Dir(name)); err != nil {
		return err
	}
	var s unix.Stat_t
	base := path.Base(name)
	if err := unix.Fstatat(int(c.source.Fd()), base, &s, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	d, err := openBelow(c.dest, base)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := unix.Fchmod(int(d.Fd()), s.Mode&0o777|0o700); err != nil {
		return err
	}
	return setTime(c.dest, base, &s)
}

func setTime(dir *os.File, name string, s *unix.Stat_t) error {
	return unix.UtimesNanoAt(int(dir.Fd()), name, []unix.Timespec{s.Mtim, s.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
}

func (c *copier) copyLink(name string) error {
	target := make([]byte, maxPathBytes+1)
	n, err := unix.Readlinkat(int(c.source.Fd()), name, target)
	if err != nil {
		return err
	}
	var s unix.Stat_t
	if err := unix.Fstatat(int(c.source.Fd()), name, &s, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if err := unix.Symlinkat(string(target[:n]), int(c.dest.Fd()), name); err != nil {
		return err
	}
	return setTime(c.dest, name, &s)
}

func (c *copier) copyFile(name string) error {
	from, err := openIn(c.source, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return err
	}
	defer from.Close()
	var s unix.Stat_t
	if err := unix.Fstat(int(from.Fd()), &s); err != nil {
		return err
	}
	if s.Mode&unix.S_IFMT != unix.S_IFREG {
		return errNotRegular
	}
	to, err := openIn(c.dest, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := c.content(to, from, s.Size); err != nil {
		return err
	}
	return c.finishFile(to, name, &s)
}

func openIn(dir *os.File, name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, flags|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// content clones the content of a file, or copies it if the file system cannot clone.
func (c *copier) content(to, from *os.File, size int64) error {
	if !c.noClones && clone(to, from) == nil {
		return nil
	}
	c.noClones = true
	c.left -= size
	if c.left < 0 {
		return errTooLarge
	}
	n, err := io.Copy(to, io.LimitReader(from, size+c.left+1)) // the file may grow meanwhile
	c.left -= max(0, n-size)
	if err == nil && c.left < 0 {
		return errTooLarge
	}
	return err
}

// finishFile gives a file the mode and the time of the original. It gives the file to the owner, unless the owner may
// not read the original: then it must not read the copy either.
func (c *copier) finishFile(f *os.File, name string, s *unix.Stat_t) error {
	if o := c.owner; o != nil && o.mayRead(s) {
		if err := f.Chown(o.id(), int(o.Gid)); err != nil {
			return err
		}
	}
	if err := unix.Fchmod(int(f.Fd()), s.Mode&0o777); err != nil {
		return err
	}
	return setTime(c.dest, name, s)
}

func (u *User) mayRead(s *unix.Stat_t) bool {
	switch {
	case s.Uid == u.Uid:
		return s.Mode&0o400 != 0
	case s.Gid == u.Gid:
		return s.Mode&0o040 != 0
	}
	return s.Mode&0o004 != 0
}
