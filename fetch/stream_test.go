package fetch

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// emptyHeaders returns n PAX headers that no entry follows.
func emptyHeaders(t testing.TB, n int) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	must(t, w.WriteHeader(&tar.Header{Name: "x", Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}))
	block := buf.Bytes()[:512]
	block[156] = tar.TypeXHeader
	var sum int64
	copy(block[148:], "        ")
	for _, b := range block {
		sum += int64(b)
	}
	copy(block[148:], octal(sum))
	return bytes.Repeat(block, n)
}

func octal(n int64) string {
	text := []byte("000000\x00 ")
	for i := 5; i >= 0; i-- {
		text[i], n = byte('0'+n%8), n/8
	}
	return string(text)
}

// withoutEnd returns a tar without the two blocks that mark its end.
func withoutEnd(t testing.TB, items ...item) []byte {
	t.Helper()
	data := packTar(t, items...)
	return data[:len(data)-1024]
}

// bottomless returns archives that decompress to many bytes, although their files are small.
func bottomless(t testing.TB, ending string) map[string][]byte {
	t.Helper()
	zeros := make([]byte, 8<<20)
	chain := emptyHeaders(t, len(zeros)/512)
	found := map[string][]byte{
		"headers":   compress(t, ending, append(chain, packTar(t, runItem)...)),
		"after end": compress(t, ending, append(packTar(t, runItem), zeros...)),
		"skipped":   compress(t, ending, append(globalHeaders(t, 16), packTar(t, runItem)...)),
	}
	return found
}

func globalHeaders(t testing.TB, n int) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for range n {
		must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": strings.Repeat("x", 500_000)}}))
	}
	must(t, w.Flush())
	return buf.Bytes()
}

// All decompressed bytes count towards the limits, even bytes outside entries.
func TestBottomlessArchives(t *testing.T) {
	for _, ending := range tarEndings[1:] {
		for name, data := range bottomless(t, ending) {
			t.Run(ending+" "+name, func(t *testing.T) {
				checkUnpackFails(t, ending, data, "more than ")
			})
		}
	}
}

// If an archive decompresses to nothing but headers, unpacking stops at a limit or when the context ends.
func TestBottomlessHeaders(t *testing.T) {
	dir := t.TempDir()
	member := compress(t, "tar.zst", emptyHeaders(t, 8<<20/512))
	archive := write(t, dir+"/archive", bytes.Repeat(member, 2))
	ended, end := context.WithCancelCause(t.Context())
	end(errEnough)
	for name, tt := range map[string]struct {
		ctx  context.Context
		want string
	}{
		"limit":   {t.Context(), "more than 1048576 bytes (max_program_bytes)"},
		"context": {ended, errEnough.Error()},
	} {
		var err error
		done := make(chan struct{})
		tree := mkdir(t, dir+"/"+name)
		go func() {
			defer close(done)
			err = unpack(tt.ctx, archive, tree, Limits{Bytes: 1 << 20, Entries: 1000}, TestCompressions)
		}()
		eventually(t, "the unpacking ends", func() bool {
			select {
			case <-done:
				return true
			default:
				return false
			}
		})
		checkFailed(t, err, tt.want)
	}
}

var errEnough = errors.New("enough")

// endsAfter is a context that ends after some calls of its method Err.
type endsAfter struct {
	context.Context
	left int // calls of Err that remain before the context ends
	over int // calls of Err after the context has ended
	end  context.CancelCauseFunc
}

func newEndsAfter(t testing.TB, n int) *endsAfter {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return &endsAfter{Context: ctx, left: n, end: cancel}
}

func (e *endsAfter) Err() error {
	if e.left--; e.left < 0 {
		e.end(errEnough)
		e.over++
	}
	return e.Context.Err()
}

// When its context ends, unpack soon stops and returns the cause of the context.
func TestUnpackStopsWithContext(t *testing.T) {
	archives := map[string][]byte{
		"zip":           pack(t, "zip", append(many(20), item{name: "noise", body: noise(300_000)}, item{name: "l", kind: '2', link: "f1"}, runItem)...),
		"tar headers":   append(emptyHeaders(t, 2048), packTar(t, runItem)...),
		"empty members": append(bytes.Repeat(compress(t, "tgz", nil), 20_000), compress(t, "tgz", packTar(t, runItem))...),
		"links":         pack(t, "tar", append(many(20), item{name: "l", kind: '2', link: "f1"}, item{name: "m", kind: '2', link: "l"}, runItem)...),
	}
	for _, ending := range tarEndings {
		archives[ending] = pack(t, ending, append(many(20), item{name: "noise", body: noise(300_000)}, runItem)...)
		archives[ending+" headers"] = compress(t, ending, append(emptyHeaders(t, 2048), packTar(t, runItem)...))
		archives[ending+" after end"] = compress(t, ending, append(packTar(t, runItem), make([]byte, 1<<20)...))
	}
	for name, data := range archives {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			archive := write(t, filepath.Join(dir, "archive"), data)
			full := newEndsAfter(t, 1<<30)
			must(t, unpack(full, archive, mkdir(t, dir+"/full"), Limits{}, TestCompressions))
			asked := 1<<30 - full.left
			expect.True(t, asked >= 3, "unpack checks the context only", asked, "times")
			for n := 0; n < asked; n += 1 + asked/6 {
				ctx := newEndsAfter(t, n)
				err := unpack(ctx, archive, mkdir(t, filepath.Join(dir, "tree"+strings.Repeat("+", n%100+1)+octal(int64(n))[:6])), Limits{}, TestCompressions)
				if !errors.Is(err, errEnough) {
					expect.FailsWith(t, err, context.Canceled, "context ended at check", n, "of", asked)
				}
				expect.True(t, ctx.over <= 10, "unpack checked the context", ctx.over, "times after its end")
			}
		})
	}
}
