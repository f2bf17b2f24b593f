package fetch

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dsnet/compress/bzip2"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/tdf-framework/tdf/internal/expect"
)

var (
	eventually = expect.Eventually
	must       = expect.NoError
)

const goodScript = "#!/bin/sh\necho it runs\n"

// item is an entry of an archive that a test packs. If kind is not set, the entry is a file.
type item struct {
	name string
	body string
	mode int64 // 0 means 0644
	kind byte  // tar.Type…
	link string
}

var runItem = item{name: "run.sh", body: goodScript, mode: 0o755}

func packTar(t testing.TB, items ...item) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, it := range items {
		h := &tar.Header{Name: it.name, Typeflag: it.kind, Linkname: it.link, Mode: it.mode}
		if it.kind == 0 {
			h.Typeflag, h.Size = tar.TypeReg, int64(len(it.body))
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		must(t, w.WriteHeader(h))
		if h.Size > 0 {
			expect.Result(io.WriteString(w, it.body)).OK(t)
		}
	}
	must(t, w.Close())
	return buf.Bytes()
}

func packZip(t testing.TB, items ...item) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, it := range items {
		h := &zip.FileHeader{Name: it.name, Method: zip.Deflate}
		mode := fs.FileMode(0o644)
		if it.mode != 0 {
			mode = fs.FileMode(it.mode & 0o777)
		}
		if it.mode&0o4000 != 0 {
			mode |= fs.ModeSetuid
		}
		switch it.kind {
		case tar.TypeSymlink:
			mode, it.body = mode|fs.ModeSymlink, it.link
		case tar.TypeFifo:
			mode |= fs.ModeNamedPipe
		case tar.TypeChar:
			mode |= fs.ModeDevice | fs.ModeCharDevice
		case tar.TypeDir:
			mode |= fs.ModeDir
		}
		h.SetMode(mode)
		f := expect.Result(w.CreateHeader(h)).Value(t)
		if it.kind != tar.TypeDir {
			expect.Result(io.WriteString(f, it.body)).OK(t)
		}
	}
	must(t, w.Close())
	return buf.Bytes()
}

// compress compresses data in the format that the ending of a name stands for. For the ending "tar", it returns data
// unchanged.
func compress(t testing.TB, ending string, data []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	var w io.WriteCloser
	var err error
	switch ending {
	case "tar":
		return data
	case "tar.gz", "tgz":
		w = gzip.NewWriter(&buf)
	case "tar.bz2", "tar.bz":
		w, err = bzip2.NewWriter(&buf, nil)
	case "tar.xz":
		w, err = xz.NewWriter(&buf)
	case "tar.zst":
		w, err = zstd.NewWriter(&buf, zstd.WithEncoderConcurrency(1))
	default:
		t.Fatalf("no compression for %s", ending)
	}
	must(t, err)
	expect.Result(w.Write(data)).OK(t)
	must(t, w.Close())
	return buf.Bytes()
}

var tarEndings = []string{"tar", "tar.gz", "tgz", "tar.bz", "tar.bz2", "tar.xz", "tar.zst"}

func pack(t testing.TB, ending string, items ...item) []byte {
	t.Helper()
	if ending == "zip" {
		return packZip(t, items...)
	}
	return compress(t, ending, packTar(t, items...))
}

func newFetcher(t testing.TB) *Fetcher {
	return &Fetcher{Dir: t.TempDir(), RetryPause: 1, Compressions: TestCompressions}
}

func write(t testing.TB, name string, data []byte) string {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(t, os.WriteFile(name, data, 0o644))
	return name
}

// serve starts an http server that answers every request with data.
func serve(t testing.TB, data []byte) string {
	return serveFunc(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) })
}

func serveFunc(t testing.TB, h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// snapshot describes every file in a directory, except lock files. A description contains the file's mode, and its
// content or the link's target.
func snapshot(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if name == "." || name == privateDir || name == stagingDir || name == locksDir {
			return nil
		}
		if filepath.Dir(name) == locksDir {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + strconv.Quote(string(data))
		case info.Mode()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			text += " -> " + target
		}
		found[name] = text
		return nil
	}))
	return found
}

// fetchFails checks that a fetch fails and changes no file, and that its error contains all given texts.
func fetchFails(t *testing.T, f *Fetcher, source string, texts ...string) error {
	t.Helper()
	before := snapshot(t, f.Dir)
	_, err := f.Fetch(t.Context(), "prog", source)
	checkFailed(t, err, texts...)
	checkSame(t, f.Dir, before)
	return err
}

func checkFailed(t *testing.T, err error, texts ...string) {
	t.Helper()
	expect.MustTrue(t, err != nil, "no error")
	for _, text := range texts {
		expect.Contains(t, err.Error(), text, "does not contain")
	}
}

func checkSame(t *testing.T, dir string, before map[string]string) {
	t.Helper()
	expect.Equal(t, cmp.Diff(before, snapshot(t, dir)), "", "the directory changed")
}

// fetchWorks fetches a program. It checks that the program is ready afterwards, and that the staging directory is
// empty.
func fetchWorks(t *testing.T, f *Fetcher, source string) Program {
	t.Helper()
	p := expect.Result(f.Fetch(t.Context(), "prog", source)).Value(t)
	again, ok, err := f.Ready("prog", source)
	p.Fetched = false
	expect.NoError(t, err)
	expect.MustTrue(t, ok, "Ready =", again, ok, err, "want", p)
	expect.MustEqual(t, again, p)
	info := expect.Result(os.Stat(filepath.Join(p.Dir, "run.sh"))).Value(t)
	expect.MustTrue(t, info.Mode().Perm()&0o111 != 0, "run.sh", info)
	checkNoStaging(t, f.Dir)
	return p
}

func checkNoStaging(t *testing.T, dir string) {
	t.Helper()
	for name := range snapshot(t, dir) {
		expect.True(t, !strings.HasPrefix(name, stagingDir), name, "is left over")
	}
}
