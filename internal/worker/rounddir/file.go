package rounddir

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A reader is an open file.
type reader interface {
	io.ReaderAt
	io.Closer
}

// open opens a regular file of the program. It follows no link and never blocks. It does not even open other kinds of
// files, since opening them may have effects. It returns nil if there is no entry of that name, and an error if the
// entry is not a regular file.
func (d *Dir) open(name string) (reader, *unix.Stat_t, error) {
	if !d.OnDisk() {
		return d.openHeld(name)
	}
	fd := d.dir.fd()
	var info unix.Stat_t
	err := unix.Fstatat(fd, name, &info, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if err := d.usable(&info); err != nil {
		return nil, nil, err
	}
	file, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	f := os.NewFile(uintptr(file), name)
	// the file may have been replaced since the first check
	if err := d.stat(file, &info); err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, &info, nil
}

// stat reads the info of an open file, and returns an error if the file is not usable.
func (d *Dir) stat(file int, info *unix.Stat_t) error {
	if err := unix.Fstat(file, info); err != nil {
		return err
	}
	return d.usable(info)
}

// usable returns an error if a file is not a regular file of the program's user. A file of another user must be a hard
// link, perhaps to a file that the program may not read.
func (d *Dir) usable(info *unix.Stat_t) error {
	switch info.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		if d.owner != nil && int(info.Uid) != d.owner.UID {
			return errors.New("the file belongs to another user")
		}
		return nil
	case unix.S_IFLNK:
		return errors.New("it is a symbolic link, and must be a regular file")
	case unix.S_IFDIR:
		return errors.New("it is a directory, and must be a regular file")
	}
	return errors.New("it is neither a file nor a directory, and must be a regular file")
}

// readFull reads a file from offset on, up to its end or up to limit bytes.
func readFull(f reader, offset, limit int64) ([]byte, error) {
	b := make([]byte, limit)
	n, err := f.ReadAt(b, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}

// readWhole reads a file of at most limit bytes. If the file is larger, the error contains its size.
func readWhole(f reader, size, limit int64) ([]byte, error) {
	var b []byte
	if size <= limit {
		var err error
		if b, err = readFull(f, 0, size+1); err != nil {
			return nil, err
		}
		size = int64(len(b)) // the file may have grown since its size was read
	}
	if size > limit {
		return nil, fmt.Errorf("%d bytes, more than %d", size, limit)
	}
	return b, nil
}
