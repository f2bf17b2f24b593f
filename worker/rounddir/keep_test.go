package rounddir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFiles(t *testing.T) {
	d := plain(t)
	check := func(want bool) {
		t.Helper()
		dir, any, err := d.Files()
		if err != nil || any != want || dir != filepath.Join(d.Path(), "files") {
			t.Errorf("%s, %v, %v; want %v", dir, any, err, want)
		}
	}
	check(false)
	must(t, os.Symlink("nowhere", d.in("files/x")))
	check(true)
	must(t, os.RemoveAll(d.in("files")))
	check(false)
}

func TestKeep(t *testing.T) {
	to := filepath.Join(t.TempDir(), "kept", "1-0")
	for i, text := range []string{"first", "second"} {
		d := plain(t)
		must(t, os.Mkdir(d.in("files/sub"), 0o755))
		d.write(t, "files/sub/x", text)
		d.write(t, "scratch/y", text)
		must(t, d.KeepFiles(to+".files"))
		must(t, d.KeepScratch(to+".scratch"))
		want := map[string]string{".": "drwxr-xr-x", "sub": "drwxr-xr-x", "sub/x": "-rw-r--r-- " + text}
		if diff := cmp.Diff(want, content(t, to+".files")); diff != "" {
			t.Errorf("%d: %s", i, diff)
		}
		want = map[string]string{".": "drwxr-xr-x", "y": "-rw-r--r-- " + text}
		if diff := cmp.Diff(want, content(t, to+".scratch")); diff != "" {
			t.Errorf("%d: %s", i, diff)
		}
	}
	d := plain(t)
	must(t, d.KeepFiles(to+".files"))
	if _, err := os.Lstat(to + ".files"); !os.IsNotExist(err) {
		t.Errorf("nothing was to be kept, and there is something: %v", err)
	}
}

func TestKeepWhatIsNoDirectory(t *testing.T) {
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
			_, any, err := d.Files()
			contains(t, err, "files is no directory any more: the program has replaced it")
			contains(t, d.KeepFiles(to), "files is no directory any more")
			contains(t, d.KeepScratch(to), "scratch is no directory any more")
			if data, _ := os.ReadFile(to); any || string(data) != "kept" {
				t.Errorf("%v, %q", any, data)
			}
			must(t, d.Remove())
		})
	}
	if _, err := os.Stat(outside + "/x"); err != nil {
		t.Error(err)
	}
}
