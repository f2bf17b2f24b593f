package fetch

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Limits in bytes. zipEntryBytes limits the size of the central directory, per entry. zipSearchBytes limits the bytes
// that are read to find the central directory.
const (
	zipEntryBytes  = 512
	zipSearchBytes = 256 << 10
)

// zip unpacks a zip.
func (u *unpacker) zip(f *os.File, size int64) error {
	limits := u.budget.limits
	directory := &boundedReaderAt{
		r: contextReaderAt{u.ctx, f}, left: int64(limits.Entries)*zipEntryBytes + zipSearchBytes,
		err: limits.tooManyEntries(),
	}
	r, err := zip.NewReader(directory, size)
	if directory.left <= 0 {
		return directory.err
	}
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return u.archiveError(err)
	}
	if len(r.File) > limits.Entries {
		return limits.tooManyEntries()
	}
	directory.unbounded = true
	for _, file := range r.File {
		e, err := zipEntry(file)
		if err != nil {
			return &entryError{file.Name, err}
		}
		if err := u.add(e); err != nil {
			return err
		}
	}
	return nil
}

func zipEntry(file *zip.File) (entry, error) {
	e := entry{name: file.Name, mode: file.Mode(), open: file.Open}
	switch {
	case file.Flags&1 != 0:
		return e, errors.New("is encrypted")
	case file.Method != zip.Store && file.Method != zip.Deflate:
		return e, fmt.Errorf("is compressed by method %d (only store and deflate are supported in a zip)", file.Method)
	case e.mode&fs.ModeSymlink == 0:
		return e, nil
	}
	var err error
	e.link, err = readTarget(file)
	return e, err
}

// readTarget reads the target of a symbolic link, which is the entry's content.
func readTarget(file *zip.File) (string, error) {
	r, err := file.Open()
	if err != nil {
		return "", explainDamage(err)
	}
	defer r.Close()
	target, err := io.ReadAll(io.LimitReader(r, maxPathBytes+1))
	if err != nil {
		return "", explainDamage(err)
	}
	return string(target), nil
}

// contextReaderAt is a reader whose reads fail after ctx has ended.
type contextReaderAt struct {
	ctx context.Context
	r   io.ReaderAt
}

func (c contextReaderAt) ReadAt(p []byte, off int64) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.ReadAt(p, off)
}

// boundedReaderAt limits the size of a zip's central directory. The limit is necessary because the zip reader loads the
// directory into memory.
type boundedReaderAt struct {
	r         io.ReaderAt
	left      int64
	err       error
	unbounded bool
}

func (b *boundedReaderAt) ReadAt(p []byte, off int64) (int, error) {
	if b.unbounded {
		return b.r.ReadAt(p, off)
	}
	if b.left <= 0 {
		return 0, b.err
	}
	n, err := b.r.ReadAt(p, off)
	b.left -= int64(n)
	return n, err
}
