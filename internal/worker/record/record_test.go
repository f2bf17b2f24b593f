package record

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/internal/testsecret"
)

var (
	must   = expect.NoError
	secret = testsecret.Of
)

func TestMain(m *testing.M) {
	syscall.Umask(0o022) // some tests compare modes
	os.Exit(leaktest.M{M: m}.Run())
}

func open(t testing.TB) *Record {
	t.Helper()
	r, n, err := Open(files(t, t.TempDir(), "r.out", "r.err"))
	must(t, err)
	expect.Equal(t, n, 1, "the execution has the number")
	t.Cleanup(r.Close)
	return r
}

// files returns Files that place stdout and stderr in dir, under the names out and failure. From the second execution
// on, the names contain the number of the execution.
func files(t testing.TB, dir, out, failure string) Files {
	t.Helper()
	d := expect.Result(os.Open(dir)).Value(t)
	t.Cleanup(func() { d.Close() })
	return Files{
		Stdout: Place{Dir: d}, Stderr: Place{Dir: d},
		Names: func(n int) Names {
			number := ""
			if n > 1 {
				number = fmt.Sprint(n)
			}
			return Names{Stdout: out + number, Stderr: failure + number, Beside: []string{out + ".files" + number}}
		},
	}
}

func write(t testing.TB, f *os.File, text string) {
	t.Helper()
	expect.Result(f.WriteString(text)).OK(t)
}

// Files of an earlier execution stay. If the program of that execution still writes, it does not write to the new
// files.
func TestOpenLeavesEarlierFiles(t *testing.T) {
	for private, mode := range map[bool]fs.FileMode{false: 0o644, true: 0o600} {
		dir := t.TempDir()
		other := filepath.Join(dir, "other")
		must(t, os.WriteFile(other, []byte("kept"), 0o644))
		must(t, os.Symlink(other, filepath.Join(dir, "err")))
		must(t, os.Mkdir(filepath.Join(dir, "out.files2"), 0o755))
		f := files(t, dir, "out", "err")
		f.Private = private
		for _, number := range []int{3, 4} {
			r, n, err := Open(f)
			must(t, err)
			expect.Equal(t, n, number, "the execution has the number")
			write(t, r.Stdout, fmt.Sprint(number))
			write(t, r.Stderr, "new")
			r.Close()
		}
		for path, want := range map[string]string{"out3": "3", "out4": "4", "err3": "new", "other": "kept"} {
			path = filepath.Join(dir, path)
			got, err := os.ReadFile(path)
			info, _ := os.Lstat(path)
			expect.NoError(t, err, path)
			expect.Equal(t, string(got), want, path)
			if path != other {
				expect.Equal(t, info.Mode(), mode, path)
			}
		}
		left, _ := os.ReadDir(dir)
		expect.True(t, len(left) == 7, "the directory contains", left, "want 7 entries")
	}
}

func TestOpenEndsItsSearch(t *testing.T) {
	dir := t.TempDir()
	f := files(t, dir, "out", "err")
	names := f.Names
	f.Names = func(int) Names { return names(1) }
	r, _, err := Open(f)
	must(t, err)
	r.Close()
	_, _, err = Open(f)
	expect.FailsWith(t, err, fs.ErrExist)
	expect.Contains(t, err.Error(), "of 1000 executions of this round; move these files away")
}

// If rounds share a file name, the file belongs to the last round.
func TestOpenReplacesSharedFiles(t *testing.T) {
	dir := t.TempDir()
	f := files(t, dir, "out", "err")
	f.Stdout.Shared, f.Stderr.Shared = true, true
	old, _, err := Open(f)
	must(t, err)
	defer old.Close()
	r, n, err := Open(f)
	must(t, err)
	defer r.Close()
	write(t, old.Stdout, "old")
	expect.Equal(t, expect.Result(r.Read(10, "w1", nil)).Value(t), Texts{}, n)
	expect.Equal(t, n, 1)
}

func TestOpenAppends(t *testing.T) {
	r := open(t)
	again := expect.Result(os.OpenFile(r.Stdout.Name(), os.O_WRONLY|os.O_APPEND, 0)).Value(t)
	defer again.Close()
	write(t, r.Stdout, "1")
	write(t, again, "2")
	write(t, r.Stdout, "3")
	expect.Equal(t, expect.Result(r.Read(10, "w1", nil)).Value(t).Output, "123")
}

func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "full", "x"), 0o755))
	long := strings.Repeat("x", 300)
	for name, c := range map[string]struct {
		out, err, want string
		cause          error
	}{
		"stdout":      {long, "fine", "the file for stdout ([worker] task_output_filename): open " + dir + "/xxx", syscall.ENAMETOOLONG},
		"stderr":      {"fine", long, "the file for stderr ([worker] task_error_filename): open " + dir + "/xxx", syscall.ENAMETOOLONG},
		"a directory": {"full", "fine", "task_output_filename): remove " + dir + "/full: is a directory", syscall.EISDIR},
	} {
		t.Run(name, func(t *testing.T) {
			f := files(t, dir, c.out, c.err)
			f.Stdout.Shared = c.out == "full"
			r, _, err := Open(f)
			expect.MustEqual(t, r, nil, c.want)
			expect.Fails(t, err, c.want)
			expect.FailsWith(t, err, c.cause, "does not wrap")
		})
	}
}
