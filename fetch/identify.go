package fetch

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/mholt/archives"
)

// A format is the format of an archive. It comes from the content, not from the end of the source's name.
type format struct {
	zip  bool
	comp archives.Compression // compression of a tar; nil: none
}

// compressions are the supported compressions of a tar. The options bound the memory of zstd. The memory of xz is always
// bounded.
//
// archives.Identify is too risky for hostile bytes: it tries every format that it knows, in random order, and
// guesses some of them (brotli, zlib).
var compressions = []archives.Compression{
	gz{},
	archives.Bz2{},
	archives.Xz{},
	archives.Zstd{DecoderOptions: []zstd.DOption{
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128 << 20), zstd.WithDecoderLowmem(true),
	}},
}

var errUnknownFormat = errors.New("the content is not a supported archive (tar, tar.gz, tar.bz2, tar.xz, tar.zst, zip)")

// tarBlock is the block size of a tar, in bytes.
const tarBlock = 512

// identify returns the format of an archive. head is its beginning, of up to tarBlock bytes. identify decompresses
// nothing, so it does not check that a compressed file contains a tar.
func identify(ctx context.Context, head []byte) (format, error) {
	if isTar(head) {
		return format{}, nil
	}
	if isZip(head) {
		return format{zip: true}, nil
	}
	for _, c := range compressions {
		if found, err := c.Match(ctx, "", bytes.NewReader(head)); err == nil && found.ByStream {
			return format{comp: c}, nil
		}
	}
	return format{}, errUnknownFormat
}

// isZip also recognizes a zip without entries, unlike archives.Zip.
func isZip(head []byte) bool {
	return bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06"))
}

// isTar checks the first block only. It also recognizes a tar without entries, which has an error of its own.
func isTar(head []byte) bool {
	if len(head) < tarBlock {
		return false
	}
	_, err := tar.NewReader(io.MultiReader(bytes.NewReader(head), secondBlock{})).Next()
	return err == nil || errors.Is(err, errSecondBlock)
}

var errSecondBlock = errors.New("the header continues beyond the first block")

// secondBlock fails every read. A tar.Reader reads it only after a valid first block.
type secondBlock struct{}

func (secondBlock) Read([]byte) (int, error) { return 0, errSecondBlock }

// damaged explains the error of an archive's reader. A limitError of this package stays as it is.
func damaged(err error) error {
	if limit := limitError(""); errors.As(err, &limit) {
		return limit
	}
	return fmt.Errorf("the archive is damaged or truncated: %w", err)
}
