package program

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/pool"
)

var script = tar.Header{Name: "run.sh", Typeflag: tar.TypeReg, Mode: 0o755, Size: 3}

// tarOf returns a tar with these entries. Each file has the content x, as often as its size says.
func tarOf(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		expect.NoError(t, w.WriteHeader(&h))
		if h.Typeflag == tar.TypeReg {
			expect.Result(io.Copy(w, io.LimitReader(zeros{}, h.Size))).OK(t)
		}
	}
	expect.NoError(t, w.Close())
	return b.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func gzipped(t testing.TB, data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	expect.Result(w.Write(data)).OK(t)
	expect.NoError(t, w.Close())
	return b.Bytes()
}

func TestCheck(t *testing.T) {
	plain := tarOf(t, tar.Header{Name: "./", Typeflag: tar.TypeDir}, script, tar.Header{Name: "a/b/", Typeflag: tar.TypeDir},
		tar.Header{Name: "a/b/c", Typeflag: tar.TypeReg, Size: 9}, tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "a/b/c"})
	e := expect.Result(zstd.NewWriter(nil)).Value(t)
	for kind, archive := range map[string][]byte{"plain": plain, "gzip": gzipped(t, plain), "zstd": e.EncodeAll(plain, nil)} {
		p := expect.Result(Check(t.Context(), "my tool", archive)).Value(t)
		expect.Equal(t, p.Files, 3, kind)
		expect.Equal(t, p.Bytes, 12, kind)
		expect.True(t, strings.HasPrefix(p.Name, "my-tool-"), kind, p)
	}
}

// The same files give the same program, whether Pack has packed them, or another tar and another compression.
func TestCheckGivesThePackedProgram(t *testing.T) {
	dir := t.TempDir()
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "run.sh"), []byte("#!/bin/sh\n"), 0o755))
	packed := expect.Result(Pack(dir)).Value(t)
	other := tar.Header{
		Name: "./run.sh", Typeflag: tar.TypeReg, Mode: 0o6711, Size: 10, Uname: "me", Uid: 7,
		ModTime: time.Unix(1, 0),
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	expect.NoError(t, w.WriteHeader(&other))
	expect.Result(io.WriteString(w, "#!/bin/sh\n")).OK(t)
	expect.NoError(t, w.Close())
	for _, archive := range [][]byte{packed.Archive, b.Bytes(), gzipped(t, b.Bytes())} {
		again := expect.Result(Check(t.Context(), filepath.Base(dir), archive)).Value(t)
		expect.Equal(t, again.Name, packed.Name)
		expect.Equal(t, again.Source, packed.Source)
		expect.Equal(t, again.Files, 1)
	}
}

func TestHostileArchives(t *testing.T) {
	file := func(name string, size int64) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeReg, Size: size}
	}
	link := func(name, target string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}
	}
	var many []tar.Header
	for i := range mostEntries {
		many = append(many, file(fmt.Sprint(i), 0))
	}
	whole := tarOf(t, script, file("x", 5000))
	for name, archive := range map[string][]byte{
		"nothing":           nil,
		"text":              []byte(strings.Repeat("no tar", 200)),
		"a zip":             []byte("PK\x03\x04" + strings.Repeat("x", 1000)),
		"no run.sh":         tarOf(t, file("x", 1)),
		"run.sh below":      tarOf(t, file("p/run.sh", 1)),
		"an empty run.sh":   tarOf(t, file("run.sh", 0)),
		"run.sh as a link":  tarOf(t, file("x", 1), link("run.sh", "x")),
		"a cut tar":         whole[:1600],
		"a cut gzip":        gzipped(t, whole)[:40],
		"a broken zstd":     append(bytes.Clone(zstdMagic), whole...),
		"dots":              tarOf(t, script, file("../x", 1)),
		"hidden dots":       tarOf(t, script, file("a/../../x", 1)),
		"absolute":          tarOf(t, script, file("/x", 1)),
		"a backslash":       tarOf(t, script, file(`a\b`, 1)),
		"no UTF-8":          tarOf(t, script, file("\xff", 1)),
		"a long name":       tarOf(t, script, file(strings.Repeat("n", 256), 1)),
		"a very long name":  tarOf(t, script, file(strings.Repeat("n", 5000), 1)),
		"a long path":       tarOf(t, script, file(strings.Repeat(strings.Repeat("d", 200)+"/", 21)+"x", 1)),
		"a long odd name":   tarOf(t, script, file(strings.Repeat("\\", 5000), 1)),
		"a long link":       tarOf(t, script, link("l", "x/"+strings.Repeat("../x/", 1000))),
		"a link of a long":  tarOf(t, script, link(strings.Repeat("n", 255), strings.Repeat("n", 200))),
		"a link out":        tarOf(t, script, link("l", "../x")),
		"an absolute link":  tarOf(t, script, link("l", "/etc/passwd")),
		"a link in a cycle": tarOf(t, script, link("l", "m"), link("m", "l")),
		"a dangling link":   tarOf(t, script, link("l", "x")),
		"a hard link":       tarOf(t, script, tar.Header{Name: "h", Typeflag: tar.TypeLink, Linkname: "run.sh"}),
		"a device":          tarOf(t, script, tar.Header{Name: "d", Typeflag: tar.TypeChar}),
		"a pipe":            tarOf(t, script, tar.Header{Name: "d", Typeflag: tar.TypeFifo}),
		"a name twice":      tarOf(t, script, script),
		"below a file":      tarOf(t, script, file("run.sh/x", 1)),
		"a reserved name":   tarOf(t, script, file("a/.tdf-x", 1)),
		"too many files":    tarOf(t, append(many, script)...),
	} {
		if p, err := Check(t.Context(), "p", archive); tdf.CodeOf(err) != tdf.CodeInvalid || len(err.Error()) > 300 {
			t.Errorf("%s: %+v, %v", name, p.Name, err)
		}
	}
}

// A small archive may unpack to much, but not to more than workers accept.
func TestBomb(t *testing.T) {
	var head bytes.Buffer
	expect.NoError(t, tar.NewWriter(&head).WriteHeader(&tar.Header{Name: "zeros", Typeflag: tar.TypeReg, Size: mostUnpacked}))
	e := expect.Result(zstd.NewWriter(nil)).Value(t)
	archive := append(e.EncodeAll(head.Bytes(), nil), bytes.Repeat(e.EncodeAll(make([]byte, 1<<20), nil), 1<<10)...)
	expect.Result(Check(t.Context(), "p", archive)).Fails(t, "more than 1073741824 bytes when it is unpacked")
}

func FuzzCheck(f *testing.F) {
	whole := tarOf(f, script, tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "run.sh"})
	f.Add(whole)
	f.Add(gzipped(f, whole))
	f.Fuzz(func(t *testing.T, archive []byte) {
		if _, err := Check(t.Context(), "p", archive); err != nil && tdf.CodeOf(err) != tdf.CodeInvalid {
			t.Error(err)
		}
	})
}

// The window of a decompressor and the names of an archive are charged before they are in memory.
func TestMemoryForArchives(t *testing.T) {
	t.Parallel()
	window := "\x28\xb5\x2f\xfd\x00\x80\x02\x00\x00" // asks for 64 MiB
	var names bytes.Buffer
	w := tar.NewWriter(&names)
	for i := range 2000 {
		expect.NoError(t, w.WriteHeader(&tar.Header{Name: fmt.Sprint("a/b/c/", i), Typeflag: tar.TypeReg}))
	}
	expect.NoError(t, w.Close())
	for _, archive := range []string{window, names.String()} {
		account := &pool.Account{}
		account.Begin(pool.New(2*(encoderBytes+2*int64(len(archive))+300<<10)), "a")
		_, err := Check(pool.With(t.Context(), account), "p", []byte(archive))
		expect.FailsWith(t, err, pool.ErrLarge)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Check(ctx, "p", names.Bytes())
	expect.FailsWith(t, err, context.Canceled)
}
