package web

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/blob"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/task"
)

// Clients store blobs in parts, and read them from any place on.
func TestBlobs(t *testing.T) {
	dir := expect.Result(blob.OpenDir(t.TempDir(), "n")).Value(t)
	s := newSite(t, Options{Blobs: dir})
	sum := sha256.Sum256([]byte("hello, world"))
	name := hex.EncodeToString(sum[:])
	at := base + "/blobs/" + name
	const octet = "Content-Type: application/octet-stream"
	expect.Contains(t, s.as(access.Worker, 200, "GET", base+"/blobs", "").text, dir.ID)
	for _, c := range []struct {
		role   access.Role
		query  string
		body   string
		status int
		want   string
	}{
		{access.Submitter, "?bytes=12", "", 200, `{"have":0}`},
		{access.Submitter, "?bytes=12&from=0", "hello", 200, `{"have":5}`},
		{access.Worker, "?bytes=12&from=9", "x", 200, `{"have":5}`},
		{access.Worker, "?bytes=12&from=5", ", world!", 422, "more than 12 bytes"},
		{access.Worker, "?from=5", ", world", 422, "bytes"},
		{access.Worker, "?bytes=12&from=-5", ", world", 422, "from"},
		{access.Worker, "?bytes=99999999999999999&from=0", "x", 422, "no number of bytes"},
		{access.Worker, "?bytes=12&from=5", ", world", 200, `{"have":12}`},
		{access.Submitter, "?bytes=12", "", 200, `{"have":12}`},
		{access.Submitter, "?bytes=13", "", 422, "has 12 bytes, not 13"},
	} {
		got := s.as(c.role, c.status, "PUT", at+c.query, c.body, octet)
		expect.Contains(t, got.text, c.want, c.query)
	}
	for query, want := range map[string]string{"": "hello, world", "?from=7": "world", "?from=7&most=2": "wo", "?from=12": "", "?from=99": ""} {
		expect.Equal(t, s.as(access.Viewer, 200, "GET", at+query, "").text, want, query)
	}
	other := base + "/blobs/" + strings.Repeat("0", 64)
	expect.Contains(t, s.as(access.Worker, 404, "GET", other, "").text, "not stored any more")
	expect.Contains(t, s.as(access.Worker, 422, "PUT", other+"?bytes=1", "x", octet).text, "the bytes have the SHA-256")
	lost := `{"program":"p","source":"rsync:/p/run.sh","blobs":["%s:%d"]}`
	s.as(access.Operator, 404, "POST", base+"/tasks", fmt.Sprintf(lost, strings.Repeat("0", 64), 1))
	s.as(access.Operator, 201, "POST", base+"/tasks", fmt.Sprintf(lost, name, 12))
}

// An API without a directory says so.
func TestNoBlobs(t *testing.T) {
	s := newSite(t, Options{})
	for _, path := range []string{"", "/" + strings.Repeat("0", 64)} {
		expect.Contains(t, s.as(access.Operator, 404, "GET", base+"/blobs"+path, "").text, "[http] blobs")
	}
}

// A token gets no more than its share of the disk, and leaves places for blobs of others. What it does not finish
// counts, too.
func TestShareOfBlobs(t *testing.T) {
	dir := expect.Result(blob.OpenDir(t.TempDir(), "n")).Value(t)
	s := newSite(t, Options{Blobs: dir})
	store, ctx := managing.Of(s.manager).Store, t.Context()
	var shares blobShares
	free, _, err := dir.Free()
	expect.NoError(t, err)
	b := func(i int, bytes int64) task.Blob { return task.Blob{SHA256: fmt.Sprintf("%064x", i), Bytes: bytes} }
	expect.NoError(t, shares.begin(ctx, store, dir, "a", b(1, free/8)))
	expect.NoError(t, shares.begin(ctx, store, dir, "a", b(1, free/8))) // a later part
	expect.Fails(t, shares.begin(ctx, store, dir, "a", b(2, free/5)), "its share of the disk")
	expect.NoError(t, shares.begin(ctx, store, dir, "b", b(2, free/5)))
	shares.end("a", b(1, free/8), true)
	expect.Fails(t, shares.begin(ctx, store, dir, "a", b(3, free/4)), "its share of the disk")
	for i := range mostParts / blobShare {
		expect.NoError(t, shares.begin(ctx, store, dir, "c", b(100+i, 1)), i)
	}
	expect.Fails(t, shares.begin(ctx, store, dir, "c", b(99, 1)), "finish some of them")
	expect.NoError(t, shares.begin(ctx, store, dir, "d", b(99, 1)))

	// They count for as long as they may be on the disk.
	for sum, p := range shares.parts {
		p.last = p.last.Add(-blob.PartKeep + time.Hour)
		shares.parts[sum] = p
	}
	shares.read = time.Time{}
	expect.Fails(t, shares.begin(ctx, store, dir, "c", b(99, 1)), "finish some of them")
	shares.end("c", b(100, 1), false)
	expect.NoError(t, shares.begin(ctx, store, dir, "c", b(99, 1)))
}
