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
	gz{},
	archives.Bz2{},
	archives.Xz{},
	archives.Zstd{DecoderOptions: []zstd.DOption{
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128 << 20), zstd.WithDecoderLowmem(true),
	}},
}

var errUnknownFormat = errors.New("the content is no archive that is known here (tar, tar.gz, tar.bz2, tar.xz, tar.zst, zip)")

// tarBlock is the unit of a tar, in bytes.
const tarBlock = 512

// identify returns the format of an archive that begins with head, of up to tarBlock bytes.
// It decompresses nothing: whether a tar is inside a compression is seen when it is unpacked.
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

// isZip also takes a zip without entries for one, which archives.Zip does not.
func isZip(head []byte) bool {
	return bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06"))
}

// isTar looks at the first block alone. It also takes an archive without entries for one: there is
// a better text for that.
func isTar(head []byte) bool {
	if len(head) < tarBlock {
		return false
	}
	_, err := tar.NewReader(io.MultiReader(bytes.NewReader(head), beyond{})).Next()
	return err == nil || errors.Is(err, errBeyond)
}

var errBeyond = errors.New("beyond the first block")

// beyond is what follows a header that is valid as far as it goes.
type beyond struct{}

func (beyond) Read([]byte) (int, error) { return 0, errBeyond }

// damaged explains what a reader of archives says, unless it only passes on a limit of ours.
func damaged(err error) error {
	if limit := limitError(""); errors.As(err, &limit) {
		return limit
	}
	return fmt.Errorf("the archive is damaged or cut short: %w", err)
}
