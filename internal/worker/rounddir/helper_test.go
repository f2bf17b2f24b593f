package rounddir

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/internal/testsecret"
	"github.com/tdf-framework/tdf/internal/worker/secrets"
)

var (
	must   = expect.NoError
	secret = testsecret.Of
)

func TestMain(m *testing.M) {
	syscall.Umask(0o022) // some tests compare modes
	os.Exit(leaktest.M{M: m}.Run())
}

var limits = Limits{Checkpoint: 100, Result: 100, Updates: 1 << 20}

// create makes a round's directory, as a worker does.
func create(t testing.TB, before Before, l Limits, s *secrets.Secrets) *Dir {
	t.Helper()
	d := expect.Result(Create(filepath.Join(t.TempDir(), "rounds", "1-0"), before, nil, l, s)).Value(t)
	t.Cleanup(func() { must(t, d.Remove()) })
	return d
}

func plain(t testing.TB) *Dir { return create(t, Before{}, limits, nil) }

// write writes a file in the directory, as a program does.
func (d *Dir) write(t testing.TB, name, text string) {
	t.Helper()
	must(t, os.WriteFile(d.in(name), []byte(text), 0o644))
}

func (d *Dir) append(t testing.TB, name, text string) {
	t.Helper()
	f := expect.Result(os.OpenFile(d.in(name), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)).Value(t)
	expect.Result(f.WriteString(text)).OK(t)
	must(t, f.Close())
}

// replace writes a file under a temporary name, and then renames the file to the given name.
func (d *Dir) replace(t testing.TB, name, text string) {
	t.Helper()
	d.write(t, name+".new", text)
	must(t, os.Rename(d.in(name+".new"), d.in(name)))
}

// news compares the exported fields of the next report with want, and returns the report.
func (d *Dir) news(t testing.TB, want Report) Report {
	t.Helper()
	got := d.News(false)
	sameReport(t, got, want)
	return got
}

func sameReport(t testing.TB, got, want Report) {
	t.Helper()
	want.FirstUpdate = max(want.FirstUpdate, 1)
	got.from, got.to = state{}, state{}
	expect.Equal(t, cmp.Diff(want, got, cmp.AllowUnexported(Report{}, state{}, position{})), "", "report")
}

// odd contains the other kinds of entries that a program may leave in place of a file, each with the reported problem.
var odd = map[string]struct {
	leave func(path string) error
	want  string
}{
	"link":          {func(path string) error { return os.Symlink("/etc/passwd", path) }, "it is a symbolic link"},
	"link nowhere":  {func(path string) error { return os.Symlink("nowhere", path) }, "it is a symbolic link"},
	"link to a dir": {func(path string) error { return os.Symlink("scratch", path) }, "it is a symbolic link"},
	"pipe":          {func(path string) error { return syscall.Mkfifo(path, 0o666) }, "it is neither a file nor a directory"},
	"directory":     {func(path string) error { return os.MkdirAll(path+"/x", 0o755) }, "it is a directory"},
	"socket":        {socket, "it is neither a file nor a directory"},
}

func socket(path string) error {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	// The path of a socket must be short, so the test uses only the last part of the path.
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	defer os.Chdir(here)
	if err := os.Chdir(filepath.Dir(path)); err != nil {
		return err
	}
	return syscall.Bind(fd, &syscall.SockaddrUnix{Name: filepath.Base(path)})
}

// content returns the mode and the content of each entry below a directory.
func content(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		found[name] = info.Mode().String()
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			found[name] += " " + string(data)
			return err
		}
		return nil
	}))
	return found
}

func contains(t testing.TB, err error, want string) {
	t.Helper()
	expect.Fails(t, err, want)
}
