package rounddir

import (
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Untouched reports whether the program left the directory unchanged. If so, another round can use the directory
// ([Dir.Again]). Again saves time: on many file systems, making a new directory takes longer than running a short
// program. Untouched is always false for a directory of another user, because that user's other programs may have open
// files in it.
func (d *Dir) Untouched() bool {
	if d.owner != nil {
		return false
	}
	if d.unchanged() {
		var info unix.Stat_t
		return unix.Fstat(d.dir.fd(), &info) == nil && inPlace(d.path, info)
	}
	m := d.marksNow()
	if !d.looksUntouched() {
		return false
	}
	m.made = time.Now()
	if m.all != d.marks.all {
		d.marks = m
	}
	return true
}

func (d *Dir) looksUntouched() bool {
	info, err := d.dir.info()
	if err != nil || !d.asMade(info, 0o700) || !inPlace(d.path, info) {
		return false
	}
	whole := true
	found := 0
	err = d.dir.each(func(name string) bool {
		found++
		whole = (name == filesDir || name == ScratchDir) && d.emptyAsMade(name)
		return whole
	})
	return err == nil && whole && found == 2
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

// A mark shows whether a directory has changed. It contains the time of the last change. The file system sets this time
// if an entry of the directory is made, removed or renamed, or if the directory's rights change.
type mark struct {
	device, inode uint64
	mode          uint32
	changed       unix.Timespec
}

// marks contains the marks of the round's directory, of files/ and of scratch/, as they were when the worker made the
// directories.
type marks struct {
	all  [3]mark
	made time.Time
	ok   bool // the marks are known
}

// settled is the age from which marks are trusted. The times of a file system have a resolution of up to two seconds.
// If a directory changes twice within this time, the second change may leave the time of the last change as it was.
const settled = 3 * time.Second

func markOf(info *unix.Stat_t) mark {
	return mark{uint64(info.Dev), uint64(info.Ino), uint32(info.Mode), unix.Timespec{
		Sec:  info.Ctim.Sec,
		Nsec: info.Ctim.Nsec,
	}}
}

// marksNow returns the present marks.
func (d *Dir) marksNow() (m marks) {
	var info [3]unix.Stat_t
	m.ok = unix.Fstat(d.dir.fd(), &info[0]) == nil
	for i, name := range []string{filesDir, ScratchDir} {
		m.ok = m.ok && unix.Fstatat(d.dir.fd(), name, &info[i+1], unix.AT_SYMLINK_NOFOLLOW) == nil
	}
	for i := range info {
		m.all[i] = markOf(&info[i])
	}
	return m
}

// topUnchanged returns true only if it is certain that no entry of the directory itself was made, removed or renamed
// since the round began.
func (d *Dir) topUnchanged() bool {
	var info unix.Stat_t
	return d.quick && unix.Fstat(d.dir.fd(), &info) == nil && markOf(&info) == d.marks.all[0]
}

// unchanged returns true only if it is certain that nothing in the directory has changed since the round began.
func (d *Dir) unchanged() bool {
	if !d.quick {
		return false
	}
	now := d.marksNow()
	return now.ok && now.all == d.marks.all
}
