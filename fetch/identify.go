package fetch

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
	"github.com/mholt/archives"
)

// A format is how an archive is packed, told by its content. What its name ends in only decided
// that it may be fetched.
type format struct {
	zip  bool
	comp archives.Compression // around a tar; nil: none
}

// compressions that may be around a tar. The memory of zstd is bounded; that of xz is by itself.
//
// They are asked one by one, and archives.Identify is not: it tries every format it knows in
// random order, some of them guesses (brotli, zlib), and all of that on hostile bytes.
var compressions = []archives.Compression{
	archives.Gz{},
	archives.Bz2{},
	archives.Xz{},
	archives.Zstd{DecoderOptions: []zstd.DOption{
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128 << 20), zstd.WithDecoderLowmem(true),
	}},
}

var errUnknownFormat = errors.New("the content is no archive that is known here (tar, tar.gz, tar.bz2, tar.xz, tar.zst, zip)")

// identify reads the beginning of f, and leaves f at its start.
func identify(ctx context.Context, f *os.File) (format, error) {
	if isTar(f) {
		return format{}, rewind(f)
	}
	if isZip(f) {
		return format{zip: true}, rewind(f)
	}
	for _, c := range compressions {
		if !matches(ctx, c, f) {
			continue
		}
		if err := rewind(f); err != nil {
			return format{}, err
		}
		if err := checkInner(c, f); err != nil {
			return format{}, err
		}
		return format{comp: c}, rewind(f)
	}
	return format{}, errUnknownFormat
}

func matches(ctx context.Context, m archives.Format, f *os.File) bool {
	if rewind(f) != nil {
		return false
	}
	found, err := m.Match(ctx, "", f)
	return err == nil && found.ByStream
}

// isZip also takes a zip without entries for one, which archives.Zip does not.
func isZip(f *os.File) bool {
	magic := make([]byte, 4)
	_, err := f.ReadAt(magic, 0)
	return err == nil && (string(magic) == "PK\x03\x04" || string(magic) == "PK\x05\x06")
}

// isTar also takes an archive without entries for one: there is a better text for that.
func isTar(r io.Reader) bool {
	_, err := tar.NewReader(r).Next()
	return err == nil || errors.Is(err, io.EOF)
}

func checkInner(c archives.Compression, f *os.File) error {
	r, err := c.OpenReader(f)
	if err != nil {
		return damaged(err)
	}
	defer r.Close()
	// One byte first, to tell what cannot be decompressed from what is no tar.
	one := make([]byte, 1)
	if _, err := io.ReadFull(r, one); err != nil && !errors.Is(err, io.EOF) {
		return damaged(err)
	}
	if !isTar(io.MultiReader(bytes.NewReader(one), r)) {
		return fmt.Errorf("%s without a tar inside; %w", c.Extension()[1:], errUnknownFormat)
	}
	return nil
}

func rewind(f *os.File) error {
	_, err := f.Seek(0, io.SeekStart)
	return err
}

// damaged explains what a reader of archives says, unless it only passes on a limit of ours.
func damaged(err error) error {
	if limit := limitError(""); errors.As(err, &limit) {
		return limit
	}
	return fmt.Errorf("the archive is damaged or cut short: %w", err)
}
