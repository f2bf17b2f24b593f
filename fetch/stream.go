package fetch

import (
	"bufio"
	"context"
	"io"
	"os"
)

// streamBuffer is the number of bytes that a stream reads between two checks of its context.
const streamBuffer = 64 << 10

// A stream reads a tar from a decompressor. It counts all decompressed bytes, including headers, skipped content, and
// bytes after the last entry. It checks whether ctx has ended when it reads compressed bytes, and again when it returns
// decompressed bytes. One check is not enough, because a decompressor may read many bytes and return few.
type stream struct {
	ctx    context.Context
	r      io.Reader
	budget *budget
	close  func() error
}

// openStream returns a stream that decompresses f. If comp is nil, f is not compressed.
func (u *unpacker) openStream(comp *Compression, f *os.File) (*stream, error) {
	s := &stream{u.ctx, bufio.NewReaderSize(contextReader{u.ctx, f}, streamBuffer), &u.budget, func() error {
		return nil
	}}
	if comp == nil {
		return s, nil
	}
	r, err := comp.Open(s.r)
	if err != nil {
		return nil, err
	}
	s.r, s.close = r, r.Close
	return s, nil
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := contextReader{s.ctx, s.r}.Read(p[:min(len(p), streamBuffer)])
	if over := s.budget.addStream(n); over != nil {
		return 0, over
	}
	return n, err
}
