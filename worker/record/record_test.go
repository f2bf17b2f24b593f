package record

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/worker/secrets"
)

func TestMain(m *testing.M) {
	syscall.Umask(0o022) // some tests look at modes
	os.Exit(leaktest.M{M: m}.Run())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB) *Record {
	t.Helper()
	dir := t.TempDir()
	r, err := Open(filepath.Join(dir, "r.out"), filepath.Join(dir, "r.err"), false)
	must(t, err)
	t.Cleanup(r.Close)
	return r
}

func print(t testing.TB, f *os.File, text string) {
	t.Helper()
	_, err := f.WriteString(text)
	must(t, err)
}

// secret loads values as a worker does.
func secret(t testing.TB, values ...string) *secrets.Secrets {
	t.Helper()
	path := filepath.Join(t.TempDir(), "env")
	var b strings.Builder
	for i, value := range values {
		b.WriteString("S" + strings.Repeat("_", i) + "=" + value + "\n")
	}
	must(t, os.WriteFile(path, []byte(b.String()), 0o600))
	s, err := secrets.Load(path)
	must(t, err)
	return s
}

func TestOpenMakesNewFiles(t *testing.T) {
	for private, mode := range map[bool]fs.FileMode{false: 0o644, true: 0o600} {
		dir := t.TempDir()
		out, failure, other := filepath.Join(dir, "a", "b", "out"), filepath.Join(dir, "err"), filepath.Join(dir, "other")
		must(t, os.WriteFile(other, []byte("kept"), 0o644))
		must(t, os.Symlink(other, failure))
		for range 2 {
			r, err := Open(out, failure, private)
			must(t, err)
			print(t, r.Stdout, "new")
			print(t, r.Stderr, "new")
			r.Close()
		}
		for path, want := range map[string]string{out: "new", failure: "new", other: "kept"} {
			got, err := os.ReadFile(path)
			info, _ := os.Lstat(path)
			if err != nil || string(got) != want {
				t.Errorf("%s: %q, %v", path, got, err)
			}
			if path != other && info.Mode() != mode {
				t.Errorf("%s: mode %v, want %v", path, info.Mode(), mode)
			}
		}
	}
}

// What ran before may still write to its files; that is none of this round's.
func TestOpenLeavesTheOldFileToWhoHasIt(t *testing.T) {
	old := open(t)
	r, err := Open(old.Stdout.Name(), old.Stderr.Name(), false)
	must(t, err)
	defer r.Close()
	print(t, old.Stdout, "old")
	got, err := r.Read(10, "w1", nil)
	if err != nil || got != (Texts{}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestOpenAppends(t *testing.T) {
	r := open(t)
	again, err := os.OpenFile(r.Stdout.Name(), os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	defer again.Close()
	print(t, r.Stdout, "1")
	print(t, again, "2")
	print(t, r.Stdout, "3")
	if got, err := r.Read(10, "w1", nil); err != nil || got.Output != "123" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o644))
	must(t, os.MkdirAll(filepath.Join(dir, "full", "x"), 0o755))
	fine := filepath.Join(dir, "fine")
	for name, c := range map[string]struct {
		out, err, want string
		cause          error
	}{
		"stdout":        {filepath.Join(file, "x"), fine, "the file for stdout ([worker] task_output_filename): mkdir " + file, syscall.ENOTDIR},
		"stderr":        {fine, filepath.Join(file, "x"), "the file for stderr ([worker] task_error_filename): mkdir " + file, syscall.ENOTDIR},
		"a directory":   {filepath.Join(dir, "full"), fine, "task_output_filename): remove ", syscall.ENOTEMPTY},
		"name too long": {filepath.Join(dir, strings.Repeat("x", 300)), fine, "task_output_filename): ", syscall.ENAMETOOLONG},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Open(c.out, c.err, false)
			if r != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, %v; want %q", r, err, c.want)
			}
			if c.cause != nil && !errors.Is(err, c.cause) {
				t.Errorf("%v does not wrap %v", err, c.cause)
			}
		})
	}
}
