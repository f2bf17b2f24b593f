package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

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
