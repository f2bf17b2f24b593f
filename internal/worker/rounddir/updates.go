package rounddir

import (
	"bytes"
	"errors"
	"fmt"
)

// Bounds of one report's updates.
const (
	updatesRead  = 256 << 10 // maximum number of bytes to read from the file
	updatesLines = 1000      // maximum number of lines to report
	updateBytes  = 4 << 10   // maximum number of bytes to report of each line
	// a line counts as at least this many bytes, because even a short line takes that much memory in Redis
	leastUpdate = 64
)

// A position says how much of the file updates was reported.
type position struct {
	inode  uint64 // 0 for a file in memory
	offset int64
	within bool // the offset is within a line that is too long; the beginning of the line was reported
	lines  int
	bytes  int64 // the number of bytes of the lines so far, as the limit counts them
	closed bool  // the limit was reached
}

var errReplaced = errors.New("the file was emptied or replaced, and is read from its beginning; lines must be " +
	"appended to it")

func (d *Dir) readUpdates(r *Report, final bool) {
	p := &r.to.updates
	if p.closed {
		return
	}
	f, info, err := d.open(UpdatesFile)
	if err != nil {
		d.problem(r, UpdatesFile, "", err)
	}
	if f == nil {
		return
	}
	defer f.Close()
	inode := uint64(info.Ino)
	if p.inode != 0 && inode != p.inode || info.Size < p.offset {
		d.problem(r, UpdatesFile, "replaced", errReplaced)
		p.offset, p.within = 0, false
	}
	p.inode = inode
	if err := d.readLines(r, f, info.Size, final); err != nil {
		d.problem(r, UpdatesFile, "", err)
	}
}

func (d *Dir) readLines(r *Report, f reader, size int64, final bool) error {
	p := &r.to.updates
	if size == p.offset {
		return nil
	}
	b, err := readFull(f, p.offset, min(updatesRead, size-p.offset))
	if err != nil {
		return err
	}
	end := p.offset + int64(len(b))
	last := final && end >= size
	n := 1
	for n > 0 && len(b) > 0 && len(r.Updates) < updatesLines && !p.closed {
		n = d.takeLine(r, b, last)
		b, p.offset = b[n:], p.offset+int64(n)
	}
	r.More = !p.closed && (end < size || n > 0 && len(b) > 0)
	return nil
}

// takeLine adds the first line of b, and returns how many bytes of b it took. It takes 0 bytes if the end of the line
// is not written yet. It skips the rest of a line that is too long.
func (d *Dir) takeLine(r *Report, b []byte, last bool) int {
	p := &r.to.updates
	length, next := len(b), len(b)
	if end := bytes.IndexByte(b, '\n'); end >= 0 {
		length, next = end, end+1
	}
	whole := next > length
	if !whole && !last && !p.within && length <= updateBytes {
		return 0
	}
	p.bytes += max(int64(next), leastUpdate)
	switch {
	case p.bytes > d.limits.Updates:
		d.closeUpdates(r)
	case !p.within:
		p.lines++
		r.Updates = append(r.Updates, d.update(b[:length]))
	}
	p.within = !whole
	return next
}

func (d *Dir) closeUpdates(r *Report) {
	p := &r.to.updates
	p.closed = true
	p.lines++
	r.Updates = append(r.Updates, fmt.Sprintf("[updates end here: more than %d bytes]", d.limits.Updates))
	d.problem(r, UpdatesFile, "limit", fmt.Errorf("more than %d bytes; the rest is left out",
		d.limits.Updates))
}

// update returns the text of a line with masked secrets.
func (d *Dir) update(b []byte) string {
	most := min(len(b), updateBytes)
	line := d.secrets.Mask(string(b[:most]))
	if len(b) > most {
		line += ellipsis
	}
	return cut(line, updateBytes)
}
