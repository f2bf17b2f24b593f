package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestLocalPaths(t *testing.T) {
	f := newFetcher(t)
	name := write(t, filepath.Join(t.TempDir(), "a b", "x.tar"), pack(t, "tar", runItem))
	fetchWorks(t, f, "rsync:"+name)

	f = newFetcher(t)
	write(t, filepath.Join(f.Dir, "src:1", "run.sh"), []byte(goodScript))
	fetchWorks(t, f, "rsync:./src:1/run.sh")

	f = newFetcher(t)
	must(t, os.Symlink(name, filepath.Join(f.Dir, "link.tar")))
	t.Setenv("PATH", t.TempDir()) // without rsync
	fetchWorks(t, f, "rsync:link.tar")
}

func TestLocalPathsThatFail(t *testing.T) {
	f := newFetcher(t)
	f.Limits.Bytes = 10
	must(t, os.MkdirAll(filepath.Join(f.Dir, "dir", "run.sh"), 0o755))
	must(t, syscall.Mkfifo(filepath.Join(f.Dir, "fifo.zip"), 0o644))
	write(t, filepath.Join(f.Dir, "long.zip"), []byte("12345678901"))
	write(t, filepath.Join(f.Dir, "empty.zip"), nil)
	tests := map[string]string{
		"none.zip":   "none.zip: no such file or directory",
		"dir/run.sh": "is a directory; a source is one file",
		"fifo.zip":   "is a named pipe, not a regular file",
		"long.zip":   "more than 10 bytes (max_program_bytes)",
		"empty.zip":  "the source is empty",
	}
	for path, want := range tests {
		fetchFails(t, f, "rsync:"+path, "fetching rsync:"+path+": rsync: ", want)
	}
}

func blobs(stored map[string][]byte) func(context.Context, string) (io.ReadCloser, error) {
	return func(_ context.Context, sum string) (io.ReadCloser, error) {
		if data, found := stored[sum]; found {
			return io.NopCloser(bytes.NewReader(data)), nil
		}
		return nil, fmt.Errorf("blob %s: %w", sum, fs.ErrNotExist)
	}
}

func TestRedis(t *testing.T) {
	data := pack(t, "tar.gz", runItem)
	sum, other := sumOf(data), sumOf([]byte("other"))
	f := newFetcher(t)
	fetchFails(t, f, "redis:"+sum, "fetching redis:"+sum+": redis: no Redis to fetch from")
	f.Blob = blobs(map[string][]byte{sum: data, other: data})
	fetchFails(t, f, "redis:"+sumOf(nil), "redis: nothing is stored in this namespace under that SHA-256")
	fetchFails(t, f, "redis:"+other, "the content has the SHA-256 "+sum+"; the source demands "+other)
	expect.Equal(t, fetchWorks(t, f, "redis:"+sum).SHA256, sum)
	f = newFetcher(t)
	f.Blob = func(context.Context, string) (io.ReadCloser, error) { return nil, errors.New("LOADING") }
	fetchFails(t, f, "redis:"+sum, "redis: LOADING")
}
