package archive

import (
	"bufio"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/mholt/archives"
)

const bufferSize = 64 << 10

// gz decompresses gzip as GNU tar does. Only zeros may follow the last member of the file.
type gz struct{ archives.Gz }

func (gz) OpenReader(r io.Reader) (io.ReadCloser, error) {
	in := bufio.NewReaderSize(r, bufferSize)
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
