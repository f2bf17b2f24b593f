package rounddir

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Untouched reports whether the program left the directory unchanged. If so, another round can use the directory
// ([Dir.Again]). Again saves time: on many file systems, making a new directory takes longer than running a short
// program. Untouched is always false for a directory of another user, because that user's other programs may have open
// files in it.
func (d *Dir) Untouched() bool {
	info, err := d.dir.info()
	if d.owner != nil || err != nil || !d.asMade(info, 0o700) || !inPlace(d.path, info) {
		return false
	}
	empty := false
	err = d.dir.each(func(name string) bool {
		empty = name == ScratchDir && d.emptyAsMade(name)
		return empty
	})
	return err == nil && empty
}

// inPlace reports whether a directory is at the path.
func inPlace(path string, info unix.Stat_t) bool {
	var named unix.Stat_t
	err := unix.Lstat(path, &named)
	return err == nil && named.Dev == info.Dev && named.Ino == info.Ino
}

func (d *Dir) asMade(info unix.Stat_t, mode uint32) bool {
	return uint32(info.Mode) == unix.S_IFDIR|mode && int(info.Uid) == os.Geteuid()
}

func (d *Dir) emptyAsMade(name string) bool {
	sub, err := openDir(d.dir.fd(), name, unix.O_NOFOLLOW)
	if err != nil {
		return false
	}
	defer sub.Close()
	info, err := sub.info()
	if err != nil || !d.asMade(info, 0o755) || sub.device != d.dir.device {
		return false
	}
	_, err = sub.Readdirnames(1)
	return err == io.EOF
}

func (d *dir) info() (info unix.Stat_t, err error) {
	err = unix.Fstat(d.fd(), &info)
	return info, err
}
