// Package archive has the compressions in which programs may come. It is apart from package fetch, so that a worker
// that only has handlers does not link the modules that decompress them.
package archive

import (
	"bytes"
	"context"

	"github.com/klauspost/compress/zstd"
	"github.com/mholt/archives"

	"github.com/tdf-framework/tdf/fetch"
)

// Compressions returns the supported compressions of a tar: gz, bz2, xz and zst. Each bounds the memory that it uses.
//
// They do not use the function archives.Identify, which is too risky for hostile bytes. That function tries every
// format in random order, and only guesses whether bytes are brotli or zlib.
func Compressions() (all []fetch.Compression) {
	zst := archives.Zstd{DecoderOptions: []zstd.DOption{
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128 << 20), zstd.WithDecoderLowmem(true),
	}}
	for _, c := range []archives.Compression{gz{}, archives.Bz2{}, archives.Xz{}, zst} {
		all = append(all, fetch.Compression{
			Name: c.Extension()[1:],
			Matches: func(head []byte) bool {
				found, err := c.Match(context.Background(), "", bytes.NewReader(head))
				return err == nil && found.ByStream
			},
			Open: c.OpenReader,
		})
	}
	return all
}
