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

func TestKeep(t *testing.T) {
	to := filepath.Join(t.TempDir(), "1-0")
	kept := directory(t, filepath.Dir(to))
	for i, text := range []string{"first", "second"} {
		d := plain(t)
		must(t, os.Mkdir(d.in("scratch/sub"), 0o755))
		d.write(t, "scratch/sub/x", text)
		must(t, d.KeepScratch(kept, "1-0.scratch"))
		want := map[string]string{".": "drwxr-xr-x", "sub": "drwxr-xr-x", "sub/x": "-rw-r--r-- " + text}
		expect.Equal(t, cmp.Diff(want, content(t, to+".scratch")), "", i)
	}
}

func TestKeepRefusesOtherEntries(t *testing.T) {
	outside := t.TempDir()
	must(t, os.WriteFile(outside+"/x", nil, 0o644))
	for name, leave := range map[string]func(path string) error{
		"link": func(path string) error { return os.Symlink(outside, path) },
		"file": func(path string) error { return os.WriteFile(path, nil, 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			d := plain(t)
			must(t, os.Remove(d.in("scratch")))
			must(t, leave(d.in("scratch")))
			to := filepath.Join(t.TempDir(), "to")
			contains(t, d.KeepScratch(directory(t, filepath.Dir(to)), "to"), "scratch is not a directory: the program replaced it")
			_, err := os.Lstat(to)
			expect.True(t, os.IsNotExist(err), err)
			must(t, d.Remove())
		})
	}
	expect.Result(os.Stat(outside + "/x")).OK(t)
}
