package fetch

import (
	"bufio"
	"context"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
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
func (u *unpacker) openStream(comp *compression, f *os.File) (*stream, error) {
	s := &stream{u.ctx, bufio.NewReaderSize(contextReader{u.ctx, f}, streamBuffer), &u.budget, func() error {
		return nil
	}}
	if comp == nil {
		return s, nil
	}
	r, err := comp.open(s.r)
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

// openGzip decompresses gzip as GNU tar does. Only zeros may follow the last member of the file.
func openGzip(r io.Reader) (io.ReadCloser, error) {
	in := bufio.NewReaderSize(r, streamBuffer)
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return io.NopCloser(&members{in, z}), nil
}

// members reads all members of a gzip file.
type members struct {
	in *bufio.Reader
	z  *gzip.Reader // reads the current member
}

func (m *members) Read(p []byte) (int, error) {
	for {
		n, err := m.z.Read(p)
		if err != io.EOF {
			return n, err
		}
		if n > 0 {
			return n, nil // the next call of Read returns io.EOF again
		}
		if err := m.next(); err != nil {
			return 0, err
		}
	}
}

// next opens the next member. After the last member, it returns [io.EOF].
func (m *members) next() error {
	first, err := m.in.Peek(1)
	if err != nil {
		return err
	}
	if first[0] == 0 {
		return m.padding()
	}
	if err := m.z.Reset(m.in); err != nil {
		return err
	}
	m.z.Multistream(false)
	return nil
}

func (m *members) padding() error {
	for {
		switch b, err := m.in.ReadByte(); {
		case err != nil:
			return err
		case b != 0:
			return gzip.ErrHeader
		}
	}
}
