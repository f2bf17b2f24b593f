package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tdf-framework/tdf/internal/task"
)

// A Store keeps the blobs of a namespace: a [Direct] store, or the HTTP API.
type Store interface {
	// WriteBlob adds a part as [Dir.Write] does. An empty part asks how many bytes are stored. A whole blob counts as
	// used.
	WriteBlob(ctx context.Context, b task.Blob, from int64, part []byte) (have int64, err error)
	// ReadBlob writes the bytes of a blob from a place on.
	ReadBlob(ctx context.Context, b task.Blob, from int64, to io.Writer) error
}

// A Registry records blobs in Redis.
type Registry interface {
	RegisterBlob(ctx context.Context, b task.Blob, token string) error
}

// Direct is the store of a process that has the directory.
type Direct struct {
	*Dir
	Registry
	Token string // of the client for which blobs are stored; "" if there is none
}

// WriteBlob implements [Store].
func (s Direct) WriteBlob(ctx context.Context, b task.Blob, from int64, part []byte) (have int64, err error) {
	err = s.Locked(ctx, func() error {
		have, err = s.Write(ctx, b, from, part)
		if err != nil || have < b.Bytes {
			return err
		}
		return s.RegisterBlob(ctx, b, s.Token)
	})
	return have, err
}

// ReadBlob implements [Store].
func (s Direct) ReadBlob(_ context.Context, b task.Blob, from int64, to io.Writer) error {
	f, err := s.File(b)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return err
	}
	_, err = io.Copy(to, f)
	return err
}

// partBytes is how many bytes of a blob one call carries.
const partBytes = 8 << 20

// Put stores a file, and continues where an earlier call has stopped. It returns the name of its content, and calls a
// function with the number of bytes that are stored.
func Put(ctx context.Context, to Store, f *os.File, progress func(bytes int64)) (task.Blob, error) {
	b, err := BlobOf(f)
	if err != nil {
		return b, err
	}
	have, err := to.WriteBlob(ctx, b, 0, nil)
	buffer := make([]byte, min(partBytes, b.Bytes))
	for err == nil && have < b.Bytes {
		progress(have)
		n := int(min(int64(len(buffer)), b.Bytes-have))
		if _, err := f.ReadAt(buffer[:n], have); err != nil {
			return b, changedWhile(f, err)
		}
		before := have
		have, err = to.WriteBlob(ctx, b, have, buffer[:n])
		if err == nil && have == before && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}
	progress(have)
	if err != nil {
		return b, fmt.Errorf("store %s: %w", f.Name(), err)
	}
	return b, nil
}

func changedWhile(f *os.File, err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: it shrank while it was read", f.Name())
	}
	return err
}

// Get writes a blob into a new file, and continues after the bytes that the file has. The error says so if the content
// is not that of the blob's name.
func Get(ctx context.Context, from Store, b task.Blob, to *os.File) error {
	info, err := to.Stat()
	if err != nil {
		return err
	}
	if have := info.Size(); have < b.Bytes {
		if _, err := to.Seek(have, io.SeekStart); err != nil {
			return err
		}
		if err := from.ReadBlob(ctx, b, have, to); err != nil {
			return err
		}
	}
	if _, err := to.Seek(0, io.SeekStart); err != nil {
		return err
	}
	got, err := BlobOf(to)
	if err == nil && got.SHA256 != b.SHA256 {
		err = errors.Join(fmt.Errorf("blob %s: the bytes that came have the SHA-256 %s", b.SHA256, got.SHA256),
			to.Truncate(0))
	}
	return err
}
