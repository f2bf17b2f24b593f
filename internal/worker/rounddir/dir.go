package rounddir

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A dir is an open directory, with the file system that it is on.
type dir struct {
	*os.File
	device uint64
}

func openDir(at int, name string, flags int) (*dir, error) {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return nil, err
	}
	d := &dir{File: os.NewFile(uintptr(fd), name)}
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		d.Close()
		return nil, err
	}
	d.device = uint64(info.Dev)
	return d, nil
}

func (d *dir) fd() int { return int(d.Fd()) }

// open opens a directory below d. It first makes the directory usable for this user.
func (d *dir) open(name string) (*dir, error) {
	if err := d.makeUsable(name); err != nil {
		return nil, err
	}
	sub, err := openDir(d.fd(), name, unix.O_NOFOLLOW)
	if err != nil || sub.device == d.device {
		return sub, err
	}
	sub.Close()
	return nil, errors.New("another file system is mounted there")
}

// makeUsable gives this user the rights that the program has taken away from a directory. Root needs no such rights,
// and must not change the mode of an entry that a program may have replaced.
func (d *dir) makeUsable(name string) error {
	if os.Geteuid() == 0 {
		return nil
	}
	var info unix.Stat_t
	if err := unix.Fstatat(d.fd(), name, &info, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR || info.Mode&0o700 == 0o700 {
		return nil
	}
	return unix.Fchmodat(d.fd(), name, 0o700, 0)
}

// each calls the function do for each entry of the directory, until do returns false. If do removes entries, each may
// miss other entries.
func (d *dir) each(do func(name string) bool) error {
	if _, err := d.Seek(0, 0); err != nil {
		return err
	}
	for {
		names, err := d.Readdirnames(1000)
		for _, name := range names {
			if !do(name) {
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
