package fetch

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// A format is the format of an archive. It depends on the archive's content, and not on the ending of the source's
// name.
type format struct {
	zip  bool
	comp *Compression // of a tar; nil if the tar is not compressed
}

// A Compression is a way to compress a tar. Package archive has those that TDF supports.
type Compression struct {
	Name    string // such as "gz"
	Matches func(head []byte) bool
	Open    func(io.Reader) (io.ReadCloser, error)
}

var errUnknownFormat = errors.New("the content is not a supported archive (tar, tar.gz, tar.bz2, tar.xz, tar.zst, zip)")

// tarBlock is the block size of a tar, in bytes.
const tarBlock = 512

// identify returns the format of an archive that begins with the bytes head, at most tarBlock of them. It does not
// check that a compressed file contains a tar, because it does not decompress head.
func identify(head []byte, compressions []Compression) (format, error) {
	if isTar(head) {
		return format{}, nil
	}
	if isZip(head) {
		return format{zip: true}, nil
	}
	for i := range compressions {
		if c := &compressions[i]; c.Matches(head) {
			return format{comp: c}, nil
		}
	}
	return format{}, errUnknownFormat
}

// isZip reports whether head begins a zip. The second form is a zip without entries.
func isZip(head []byte) bool {
	return bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06"))
}

// isTar reports whether head begins a tar. It checks only the first block. It accepts a tar without entries, because
// the error of unpack is clearer.
func isTar(head []byte) bool {
	if len(head) < tarBlock {
		return false
	}
	_, err := tar.NewReader(io.MultiReader(bytes.NewReader(head), secondBlock{})).Next()
	return err == nil || errors.Is(err, errSecondBlock)
}

var errSecondBlock = errors.New("the header continues beyond the first block")

// secondBlock is a reader that always fails. A tar.Reader reads from it only if the first block is valid.
type secondBlock struct{}

func (secondBlock) Read([]byte) (int, error) { return 0, errSecondBlock }

// explainDamage adds an explanation to an error that occurred while an archive was read. It returns a limitError
// unchanged.
func explainDamage(err error) error {
	if limit := limitError(""); errors.As(err, &limit) {
		return limit
	}
	return fmt.Errorf("the archive is damaged or truncated: %w", err)
}
