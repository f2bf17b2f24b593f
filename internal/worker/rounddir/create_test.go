package rounddir

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/expect"
)

const nobody = 65534

func TestCreate(t *testing.T) {
	for name, c := range map[string]struct {
		before Before
		want   map[string]string
	}{
		"first round": {Before{Checkpoint: []byte("")}, map[string]string{
			".": "drwx------", "scratch": "drwxr-xr-x",
		}},
		"later round": {Before{Checkpoint: []byte("a\x00b"), LastError: "it broke\n"}, map[string]string{
			".": "drwx------", "scratch": "drwxr-xr-x",
			"checkpoint": "-rw-r--r-- a\x00b", "last_error": "-rw-r--r-- it broke\n",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := create(t, c.before, limits, nil)
			expect.Equal(t, cmp.Diff(c.want, content(t, d.Path())), "")
			d.news(t, Report{}) // files that the worker wrote are not reported
			must(t, d.Remove())
			_, err := os.Lstat(d.Path())
			expect.True(t, os.IsNotExist(err), "the directory is still there", err)
		})
	}
}

func TestCreateReplacesADirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "1-0")
	outside := t.TempDir()
	must(t, os.WriteFile(outside+"/kept", nil, 0o644))
	for name, leave := range map[string]func() error{
		"directory": func() error { return os.MkdirAll(path+"/scratch/a/b", 0o755) },
		"file":      func() error { return os.WriteFile(path, nil, 0o644) },
		"link":      func() error { return os.Symlink(outside, path) },
	} {
		t.Run(name, func(t *testing.T) {
			must(t, leave())
			d := expect.Result(Create(path, Before{}, nil, limits, nil)).Value(t)
			expect.Len(t, content(t, path), 2)
			must(t, d.Remove())
		})
	}
	expect.Result(os.Stat(outside + "/kept")).OK(t)
}

func TestCreatePathIsAbsolute(t *testing.T) {
	t.Chdir(t.TempDir())
	d := expect.Result(Create("1-0", Before{}, nil, limits, nil)).Value(t)
	expect.True(t, filepath.IsAbs(d.Path()), d.Path())
	must(t, d.Remove())
}

func TestCreateFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o644))
	_, err := Create(file+"/1-0", Before{}, nil, limits, nil)
	contains(t, err, "not a directory")
}

func TestCreateForAnotherUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "1-0")
	owner := &Owner{nobody, nobody}
	if os.Getuid() != 0 {
		owner = &Owner{0, 0}
	}
	d, err := Create(path, Before{Checkpoint: []byte("x"), LastError: "y"}, owner, limits, nil)
	if os.Getuid() != 0 {
		contains(t, err, "to the program's user: ")
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("the directory is still there: %v", err)
		}
		return
	}
	must(t, err)
	for name := range content(t, path) {
		info := expect.Result(os.Lstat(filepath.Join(path, name))).Value(t)
		sys := info.Sys().(*syscall.Stat_t)
		expect.Equal(t, sys.Uid, nobody, name)
		expect.Equal(t, sys.Gid, nobody, name)
	}
	d.news(t, Report{})
	// A file of another user may be a hard link to a file that only root can read.
	d.replace(t, "checkpoint", "root's")
	d.write(t, "progress", "0.5")
	must(t, os.Chown(d.in("progress"), nobody, nobody))
	d.news(t, Report{Progress: "0.5", HasProgress: true, Problems: []string{"checkpoint: the file belongs to another user"}})
	must(t, d.Remove())
}

// The next round can use the directory only if the program did not touch it.
func TestAgain(t *testing.T) {
	for name, c := range map[string]struct {
		do        func(dir string) error
		untouched bool
	}{
		"nothing":       {func(string) error { return nil }, true},
		"a file":        {func(dir string) error { return os.WriteFile(dir+"/progress", nil, 0o644) }, false},
		"a hidden file": {func(dir string) error { return os.WriteFile(dir+"/scratch/.x", nil, 0o644) }, false},
		"removed":       {func(dir string) error { return os.Remove(dir + "/scratch") }, false},
		"another name":  {func(dir string) error { return os.Rename(dir+"/scratch", dir+"/other") }, false},
		"a link": {func(dir string) error {
			return errors.Join(os.Remove(dir+"/scratch"), os.Symlink("/tmp", dir+"/scratch"))
		}, false},
		"closed":          {func(dir string) error { return os.Chmod(dir+"/scratch", 0) }, false},
		"open to others":  {func(dir string) error { return os.Chmod(dir, 0o777) }, false},
		"itself replaced": {func(dir string) error { return errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o700)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := expect.Result(Create(filepath.Join(t.TempDir(), "d"), Before{}, nil, Limits{}, nil)).Value(t)
			must(t, c.do(d.Path()))
			expect.MustEqual(t, d.Untouched(), c.untouched, "untouched")
			if c.untouched {
				d = expect.Result(d.Again(Before{LastError: "oh"}, nil)).Value(t)
				expect.True(t, !d.Untouched(), "again")
				text, err := os.ReadFile(d.Path() + "/last_error")
				expect.True(t, string(text) == "oh", text, err)
			}
			expect.NoError(t, d.Remove())
		})
	}
}

// If a program puts a link into the directory, the worker does not write to the target of the link.
func TestAgainFollowsNoLink(t *testing.T) {
	for _, name := range []string{"last_error", "checkpoint"} {
		d := expect.Result(Create(filepath.Join(t.TempDir(), "d"), Before{}, nil, Limits{}, nil)).Value(t)
		elsewhere := filepath.Join(t.TempDir(), "elsewhere")
		must(t, os.Symlink(elsewhere, filepath.Join(d.Path(), name)))
		expect.Result(d.Again(Before{LastError: "text", Checkpoint: []byte("data")}, nil)).Fails(t, "", name, "no error")
		_, err := os.Lstat(elsewhere)
		expect.True(t, os.IsNotExist(err), name, "the worker wrote through the link", err)
		must(t, d.Remove())
	}
}
