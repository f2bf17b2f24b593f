package fetch

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/mholt/archives"
)

// headerBytes is what a tar may have for each of its entries besides their content: headers,
// padding, long names.
const headerBytes = 4 << 10

// tar unpacks a tar with comp around it.
func (u *unpacker) tar(comp archives.Compression, packed io.Reader) error {
	if comp != nil {
		r, err := comp.OpenReader(packed)
		if err != nil {
			return damaged(err)
		}
		defer r.Close()
		packed = r
	}
	// What is no entry (global headers, content that is skipped) costs time, and has an end too.
	most := u.budget.limits.Bytes + int64(u.budget.limits.Entries)*headerBytes
	r := &boundedReader{r: contextReader{u.ctx, packed}, left: most, err: u.budget.limits.tooManyBytes()}
	err := archives.Tar{}.Extract(u.ctx, r, func(_ context.Context, f archives.FileInfo) error {
		return u.add(tarEntry(f))
	})
	return u.archiveError(err)
}

func tarEntry(f archives.FileInfo) entry {
	e := entry{name: f.NameInArchive, mode: f.Mode(), link: f.LinkTarget}
	if h, ok := f.Header.(*tar.Header); ok {
		e.hard = h.Typeflag == tar.TypeLink
		e.mode = tarMode(h, e.mode)
	}
	e.open = func() (io.ReadCloser, error) { return f.Open() }
	return e
}

// tarMode takes the kind from the type flag alone: the mode's own bits are the packer's.
func tarMode(h *tar.Header, m fs.FileMode) fs.FileMode {
	m = m.Perm()
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeLink:
		return m
	case tar.TypeDir:
		return m | fs.ModeDir
	case tar.TypeSymlink:
		return m | fs.ModeSymlink
	case tar.TypeFifo:
		return m | fs.ModeNamedPipe
	case tar.TypeChar, tar.TypeBlock:
		return m | fs.ModeDevice
	}
	return m | fs.ModeIrregular
}

// archiveError drops what others wrapped around our own errors, and explains theirs.
func (u *unpacker) archiveError(err error) error {
	var ours *entryError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ours):
		return ours
	case u.ctx.Err() != nil:
		return u.ctx.Err()
	}
	return damaged(err)
}

// boundedReader fails, instead of ending, after so many bytes.
type boundedReader struct {
	r    io.Reader
	left int64
	err  error
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.err
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
