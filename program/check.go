package program

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/pool"
)

// An ArchiveError means that workers could not unpack an archive, or not run it as a program.
type ArchiveError struct{ Reason string }

func (e *ArchiveError) Error() string { return "check archive: " + e.Reason }

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*ArchiveError) Code() tdf.Code { return tdf.CodeInvalid }

// Check checks an archive of a program from another system: a tar, plain or compressed with gzip or zstd. It returns an
// archive for [PushPacked], with a name that begins with the given name. The archive has the same entries in the same
// order, written as [Pack] writes them: the same files, sorted by name, give the same program as with Pack. It unpacks
// nothing to disk, and keeps no file in memory.
//
// The error is an *[ArchiveError] if run.sh is missing, or if workers would refuse the archive with their default
// limits: because of a name, a link, the number of files, or their unpacked size. The account of the
// context is charged for what the check needs.
func Check(ctx context.Context, name string, archive []byte) (Packed, error) {
	if err := pool.Take(ctx, encoderBytes+2*int64(len(archive))); err != nil {
		return Packed{}, fmt.Errorf("check archive: %w", err)
	}
	t := &packTree{entries: map[string]packEntry{}}
	packed, err := compressed(func(w *tar.Writer) error { return t.check(ctx, archive, w) })
	switch {
	case err != nil && tdf.CodeOf(err) != tdf.CodeFailed:
		return Packed{}, fmt.Errorf("check archive: %w", err)
	case err != nil:
		return Packed{}, &ArchiveError{err.Error()}
	}
	return newPacked(name, packed, t), nil
}

// check reads and checks a whole archive, and writes its entries.
func (t *packTree) check(ctx context.Context, archive []byte, to *tar.Writer) error {
	r, err := opened(ctx, archive)
	if err != nil {
		return err
	}
	defer r.Close()
	tarred := tar.NewReader(&unpackedReader{ctx: ctx, r: r})
	if err := t.read(ctx, tarred, to); err != nil {
		return err
	}
	if err := t.checkRunScript(); err != nil {
		return err
	}
	return t.checkLinks()
}

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// The memory that a decompressor and a compressor may need.
const (
	maxWindow    = 64 << 20
	encoderBytes = 24 << 20
)

// opened returns a reader of the tar in an archive.
func opened(ctx context.Context, archive []byte) (io.ReadCloser, error) {
	r := bufio.NewReader(bytes.NewReader(archive))
	switch {
	case bytes.HasPrefix(archive, gzipMagic):
		return gzip.NewReader(r)
	case bytes.HasPrefix(archive, zstdMagic):
		if err := pool.Take(ctx, maxWindow); err != nil { // ten bytes may ask for it
			return nil, err
		}
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow),
			zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return io.NopCloser(r), nil
}

// An unpackedReader reads a tar, and fails if it is longer than workers accept, or when the context ends.
type unpackedReader struct {
	ctx  context.Context
	r    io.Reader
	read int64
}

func (u *unpackedReader) Read(p []byte) (int, error) {
	if err := pool.Take(u.ctx, 0); err != nil {
		return 0, err
	}
	n, err := u.r.Read(p)
	u.read += int64(n)
	if u.read > mostUnpacked {
		return n, fmt.Errorf("it has more than %d bytes when it is unpacked", mostUnpacked)
	}
	return n, err
}

// entryBytes is about what an entry needs in memory, besides its name.
const entryBytes = 256

// read reads the entries of a tar, and writes them.
func (t *packTree) read(ctx context.Context, r *tar.Reader, to *tar.Writer) error {
	for {
		h, err := r.Next()
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, tar.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF):
			return errors.New("it is no tar, plain or compressed with gzip or zstd, or it is damaged")
		case err != nil:
			return err
		case h.Typeflag == tar.TypeXGlobalHeader: // git archive writes one
			continue
		}
		entries := 1 + strings.Count(h.Name, "/") // with those of its directories
		if err := pool.Take(ctx, int64(len(h.Name)+len(h.Linkname)+entries*entryBytes)); err != nil {
			return err
		}
		if err := t.addHeader(h); err != nil {
			return fmt.Errorf("entry %.100q: %w", h.Name, err)
		}
		if err := t.copyEntry(path.Clean(h.Name), r, to); err != nil {
			return err
		}
	}
}

// copyEntry writes the entry that a reader has come to, with its content.
func (t *packTree) copyEntry(name string, r io.Reader, to *tar.Writer) error {
	e, ok := t.entries[name]
	if !ok { // the program's directory itself
		return nil
	}
	if err := to.WriteHeader(e.header(name)); err != nil || !e.mode.IsRegular() {
		return err
	}
	if name == packScript {
		var err error
		if t.head, err = io.ReadAll(io.LimitReader(r, headBytes)); err != nil {
			return err
		}
		r = io.MultiReader(bytes.NewReader(t.head), r)
	}
	_, err := io.Copy(to, r)
	return err
}

func (t *packTree) addHeader(h *tar.Header) error {
	name := path.Clean(h.Name)
	if err := checkPackName(name); err != nil {
		return err
	}
	switch {
	case h.Name == "" || !filepath.IsLocal(name):
		return errors.New("the name is empty or leads out of the directory")
	case name == ".":
		return nil
	case strings.HasPrefix(path.Base(name), reservedPrefix):
		return fmt.Errorf("workers reserve names that begin with %s", reservedPrefix)
	}
	e := packEntry{size: h.Size}
	switch h.Typeflag {
	case tar.TypeReg:
		e.mode = 0o644
		if h.Mode&0o111 != 0 || name == packScript {
			e.mode = 0o755
		}
		t.bytes += h.Size
	case tar.TypeDir:
		e.mode = fs.ModeDir
	case tar.TypeSymlink:
		e.mode, e.link = fs.ModeSymlink, h.Linkname
	default:
		return errors.New("only files, directories and symbolic links are possible")
	}
	if old, twice := t.entries[name]; twice && !(old.mode.IsDir() && e.mode.IsDir()) {
		return errors.New("the name occurs twice")
	}
	if !e.mode.IsDir() {
		t.files++
	}
	return t.put(name, e)
}

// put adds an entry and its directories.
func (t *packTree) put(name string, e packEntry) error {
	for dir := path.Dir(name); dir != "." && !t.entries[dir].mode.IsDir(); dir = path.Dir(dir) {
		if _, file := t.entries[dir]; file {
			return fmt.Errorf("%s is not a directory", dir)
		}
		t.entries[dir] = packEntry{mode: fs.ModeDir}
	}
	t.entries[name] = e
	if len(t.entries) > mostEntries {
		return errTooManyEntries
	}
	return nil
}
