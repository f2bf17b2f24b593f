package fetch

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// headerBytes is the maximum number of bytes of an entry besides its content: headers, padding and long names.
const headerBytes = 4 << 10

// tar unpacks a tar with the compression comp. It reads to the end of the file, so that the decompressor verifies its
// checksums. Like GNU tar, it ignores bytes after the end of the tar.
func (u *unpacker) tar(comp *Compression, f *os.File) error {
	s, err := u.openStream(comp, f)
	if err != nil {
		return u.archiveError(err)
	}
	defer s.close()
	r := bufio.NewReaderSize(s, streamBuffer)
	if comp != nil {
		head, err := r.Peek(tarBlock)
		if err != nil && err != io.EOF {
			return u.archiveError(err)
		}
		if len(head) > 0 && !isTar(head) {
			return fmt.Errorf("the %s file contains no tar: %w", comp.Name, errUnknownFormat)
		}
	}
	if err := u.tarEntries(tar.NewReader(r)); err != nil || comp == nil {
		return u.archiveError(err)
	}
	_, err = io.Copy(io.Discard, r)
	return u.archiveError(err)
}

func (u *unpacker) tarEntries(t *tar.Reader) error {
	for {
		h, err := t.Next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case h.Typeflag == tar.TypeXGlobalHeader: // git archive writes a global header
			continue
		}
		if err := u.add(tarEntry(t, h)); err != nil {
			return err
		}
	}
}

func tarEntry(t *tar.Reader, h *tar.Header) entry {
	return entry{
		name: h.Name, mode: tarMode(h), hard: h.Typeflag == tar.TypeLink, link: h.Linkname,
		open: func() (io.ReadCloser, error) { return io.NopCloser(t), nil },
	}
}

// tarMode returns the mode of an entry. The type comes only from the type flag, because the type bits of the mode may
// contradict the flag.
func tarMode(h *tar.Header) fs.FileMode {
	m := h.FileInfo().Mode().Perm()
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

// archiveError adds an explanation to an error that occurred while the archive was read. If the error wraps an error of
// this package, archiveError returns the wrapped error unchanged.
func (u *unpacker) archiveError(err error) error {
	var ours *entryError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ours):
		return ours
	case u.ctx.Err() != nil:
		return context.Cause(u.ctx)
	}
	return explainDamage(err)
}
