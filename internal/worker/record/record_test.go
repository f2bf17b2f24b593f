package record

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/internal/testsecret"
)

var (
	must   = expect.NoError
	secret = testsecret.Of
	round  = RoundRef{Program: "p", Task: 7}
)

func TestMain(m *testing.M) {
	syscall.Umask(0o022) // some tests compare modes
	os.Exit(leaktest.M{M: m}.Run())
}

func open(t testing.TB) *Record {
	t.Helper()
	s := &Spool{Dir: filepath.Join(t.TempDir(), "rounds")}
	r := expect.Result(s.Open(round, false)).Value(t)
	t.Cleanup(r.Release)
	return r
}

// keptIn keeps both files in a new directory, and returns their paths.
func keptIn(t testing.TB, r *Record) (out, failure string) {
	t.Helper()
	dir := directory(t, t.TempDir())
	must(t, r.Keep(0, dir, "out"))
	must(t, r.Keep(1, dir, "err"))
	return filepath.Join(dir.Name(), "out"), filepath.Join(dir.Name(), "err")
}

func directory(t testing.TB, path string) *os.File {
	t.Helper()
	f := expect.Result(os.Open(path)).Value(t)
	t.Cleanup(func() { f.Close() })
	return f
}

func prints(t testing.TB, f *os.File, text string) {
	t.Helper()
	expect.Result(f.WriteString(text)).OK(t)
}

// A round finds empty files, and leaves none, whatever an earlier execution has done to files of the same name.
func TestOpen(t *testing.T) {
	for name, act := range map[string]func(path string) error{
		"nothing":               func(string) error { return nil },
		"a file":                func(path string) error { return os.WriteFile(path, []byte("old"), 0o777) },
		"a link":                func(path string) error { return os.Symlink("/etc/passwd", path) },
		"a pipe":                func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"no directory any more": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
	} {
		for private, mode := range map[bool]fs.FileMode{false: 0o644, true: 0o600} {
			t.Run(fmt.Sprint(name, private), func(t *testing.T) {
				s := &Spool{Dir: t.TempDir()}
				must(t, act(filepath.Join(s.Dir, "7-0-p.out")))
				r := expect.Result(s.Open(round, private)).Value(t)
				prints(t, r.Stdout, "out")
				prints(t, r.Stderr, "err")
				expect.Equal(t, expect.Result(r.Stdout.Stat()).Value(t).Mode(), mode)
				got := expect.Result(r.Read(10, "w1", nil)).Value(t)
				expect.Equal(t, got.Output, "out")
				expect.Equal(t, got.Error, "err")
				r.Release()
				expect.Len(t, expect.Result(os.ReadDir(s.Dir)).Value(t), 0)
			})
		}
	}
}

func TestOpenAppends(t *testing.T) {
	r := open(t)
	again := expect.Result(os.OpenFile(r.Stdout.Name(), os.O_WRONLY|os.O_APPEND, 0)).Value(t)
	defer again.Close()
	prints(t, r.Stdout, "1")
	prints(t, again, "2")
	prints(t, r.Stdout, "3")
	expect.Equal(t, expect.Result(r.Read(10, "w1", nil)).Value(t).Output, "123")
}

func TestOpenFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o644))
	_, err := (&Spool{Dir: filepath.Join(file, "rounds")}).Open(round, false)
	expect.Fails(t, err, "the files for the output: ")
	expect.FailsWith(t, err, syscall.ENOTDIR)
}

// A file that is kept goes to its place, also if it has to be copied. A program may have replaced or removed it.
func TestKeep(t *testing.T) {
	to := map[string]string{"on the same file system": t.TempDir()}
	if other, err := os.MkdirTemp("/dev/shm", "tdf"); err == nil {
		t.Cleanup(func() { os.RemoveAll(other) })
		to["on another file system"] = other
	}
	for name, act := range map[string]func(path string) error{
		"as it was": func(string) error { return nil },
		"removed":   os.Remove,
		"renamed":   func(path string) error { return os.Rename(path, path+".mine") },
		"replaced":  func(path string) error { os.Remove(path); return os.WriteFile(path, []byte("mine"), 0o644) },
	} {
		for where, dir := range to {
			t.Run(name+" "+where, func(t *testing.T) {
				r := open(t)
				dir := directory(t, dir)
				_ = os.Remove(filepath.Join(dir.Name(), "kept"))
				must(t, os.WriteFile(filepath.Join(dir.Name(), "taken"), nil, 0o644))
				prints(t, r.Stdout, "0123456789")
				must(t, act(r.Stdout.Name()))
				expect.True(t, r.Unkept(0, 9))
				expect.True(t, !r.Unkept(1, 0))
				expect.FailsWith(t, r.Keep(0, dir, "taken"), fs.ErrExist)
				must(t, r.Keep(0, dir, "kept"))
				expect.True(t, !r.Unkept(0, -1))
				read := expect.Result(r.Read(4, "w1", nil)).Value(t)
				path := filepath.Join(dir.Name(), "kept")
				expect.Equal(t, read.Output, "01\n[6 bytes are left out here; the whole output is on worker w1 in "+path+"]\n89")
				r.Release()
				expect.Equal(t, string(expect.Result(os.ReadFile(path)).Value(t)), "0123456789")
			})
		}
	}
}
