package rounddir

import (
	"time"

	"golang.org/x/sys/unix"
)

// A mark is what a change of a directory changes: an entry that is made, removed or renamed there, or new rights, set the
// time of the last change.
type mark struct {
	device, inode uint64
	mode          uint32
	changed       unix.Timespec
}

// marks are the marks of the round's directory, files/ and scratch/, as the worker made them.
type marks struct {
	all  [3]mark
	made time.Time
	ok   bool // the marks are known
}

// settled is the age from which marks are trusted. A change that follows another one within the resolution of the file
// system's times, up to two seconds, may leave the time as it was.
const settled = 3 * time.Second

func markOf(info *unix.Stat_t) mark {
	return mark{uint64(info.Dev), uint64(info.Ino), uint32(info.Mode), unix.Timespec{Sec: info.Ctim.Sec, Nsec: info.Ctim.Nsec}}
}

// marksNow returns the present marks.
func (d *Dir) marksNow() (m marks) {
	var info [3]unix.Stat_t
	m.ok = unix.Fstat(d.dir.fd(), &info[0]) == nil
	for i, name := range []string{filesDir, scratchDir} {
		m.ok = m.ok && unix.Fstatat(d.dir.fd(), name, &info[i+1], unix.AT_SYMLINK_NOFOLLOW) == nil
	}
	for i := range info {
		m.all[i] = markOf(&info[i])
	}
	return m
}

// topUnchanged reports whether certainly no entry of the directory itself was made, removed or renamed since the round
// began.
func (d *Dir) topUnchanged() bool {
	var info unix.Stat_t
	return d.quick && unix.Fstat(d.dir.fd(), &info) == nil && markOf(&info) == d.marks.all[0]
}

// unchanged reports whether certainly nothing in the directory has changed since the round began.
func (d *Dir) unchanged() bool {
	if !d.quick {
		return false
	}
	now := d.marksNow()
	return now.ok && now.all == d.marks.all
}
