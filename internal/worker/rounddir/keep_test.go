package rounddir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/expect"
)

func directory(t testing.TB, path string) *os.File {
	t.Helper()
	f := expect.Result(os.Open(path)).Value(t)
	t.Cleanup(func() { f.Close() })
	return f
}

func TestFiles(t *testing.T) {
	d := plain(t)
	check := func(want bool) {
		t.Helper()
		expect.Result(d.Files()).Is(t, want)
	}
	check(false)
	must(t, os.Symlink("nowhere", d.in("files/x")))
	check(true)
	must(t, os.RemoveAll(d.in("files")))
	check(false)
}

func TestKeep(t *testing.T) {
	to := filepath.Join(t.TempDir(), "1-0")
	kept := directory(t, filepath.Dir(to))
	for i, text := range []string{"first", "second"} {
		d := plain(t)
		must(t, os.Mkdir(d.in("files/sub"), 0o755))
		d.write(t, "files/sub/x", text)
		d.write(t, "scratch/y", text)
		must(t, d.KeepFiles(kept, "1-0.files"))
		must(t, d.KeepScratch(kept, "1-0.scratch"))
		want := map[string]string{".": "drwxr-xr-x", "sub": "drwxr-xr-x", "sub/x": "-rw-r--r-- " + text}
		expect.Equal(t, cmp.Diff(want, content(t, to+".files")), "", i)
		want = map[string]string{".": "drwxr-xr-x", "y": "-rw-r--r-- " + text}
		expect.Equal(t, cmp.Diff(want, content(t, to+".scratch")), "", i)
	}
	d := plain(t)
	must(t, d.KeepFiles(kept, "nothing.files"))
	_, err := os.Lstat(filepath.Dir(to) + "/nothing.files")
	expect.True(t, os.IsNotExist(err), "files/ is empty, but something was kept", err)
}

func TestKeepRefusesFiles(t *testing.T) {
	outside := t.TempDir()
	must(t, os.WriteFile(outside+"/x", nil, 0o644))
	for name, leave := range map[string]func(path string) error{
		"link": func(path string) error { return os.Symlink(outside, path) },
		"file": func(path string) error { return os.WriteFile(path, nil, 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			d := plain(t)
			for _, dir := range []string{"files", "scratch"} {
				must(t, os.Remove(d.in(dir)))
				must(t, leave(d.in(dir)))
			}
			to := filepath.Join(t.TempDir(), "to")
			must(t, os.WriteFile(to, []byte("kept"), 0o644))
			found, err := d.Files()
			contains(t, err, "files is not a directory: the program replaced it")
			contains(t, d.KeepFiles(directory(t, filepath.Dir(to)), "to"), "files is not a directory: the program replaced it")
			contains(t, d.KeepScratch(directory(t, filepath.Dir(to)), "to"), "scratch is not a directory: the program replaced it")
			data, _ := os.ReadFile(to)
			expect.True(t, !found, found, data)
			expect.Equal(t, string(data), "kept")
			must(t, d.Remove())
		})
	}
	expect.Result(os.Stat(outside + "/x")).OK(t)
}
