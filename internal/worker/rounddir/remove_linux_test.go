package rounddir

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf/internal/expect"
)

// asUser calls a function as a user who is not root, on a thread that ends afterwards.
func asUser(t *testing.T, do func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		if os.Geteuid() == 0 {
			runtime.LockOSThread()
			if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); e != 0 {
				done <- e
				return
			}
		}
		done <- do()
	}()
	must(t, <-done)
}

// makeShared makes a directory that every user can use.
func makeShared(t *testing.T) string {
	t.Helper()
	dir := expect.Result(os.MkdirTemp("", "rounddir")).Value(t)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	must(t, os.Chmod(dir, 0o777))
	return dir
}

// RemoveAll also removes directories that a program has made inaccessible, at any depth.
func TestRemoveAllUnreadable(t *testing.T) {
	for _, mode := range []os.FileMode{0, 0o100, 0o200, 0o300, 0o400, 0o500, 0o600} {
		path := filepath.Join(makeShared(t), "x")
		asUser(t, func() error {
			inner := filepath.Join(path, "a", "b", "c", "d")
			if err := os.MkdirAll(inner, 0o700); err != nil {
				return err
			}
			if err := os.WriteFile(inner+"/file", nil, 0); err != nil {
				return err
			}
			for dir := inner; dir != filepath.Dir(path); dir = filepath.Dir(dir) {
				if err := os.Chmod(dir, mode); err != nil {
					return err
				}
			}
			return RemoveAll(path)
		})
		gone(t, path)
	}
}

// The error names entries that cannot be removed. The other entries are removed.
func TestRemoveAllFails(t *testing.T) {
	dir := makeShared(t)
	asUser(t, func() error { return os.MkdirAll(dir+"/x/a/b", 0o777) })
	if os.Geteuid() != 0 {
		t.Skip("only root can leave what another user cannot remove")
	}
	must(t, os.Mkdir(dir+"/x/a/root", 0o755))
	must(t, os.WriteFile(dir+"/x/a/root/file", nil, 0o600))
	asUser(t, func() error {
		contains(t, RemoveAll(dir+"/x"), "remove "+dir+"/x: a: root: permission denied")
		return nil
	})
	gone(t, dir+"/x/a/b")
	must(t, RemoveAll(dir+"/x"))
}

func TestNewsOfUnreadableFiles(t *testing.T) {
	dir := makeShared(t)
	asUser(t, func() error {
		d, err := Create(dir+"/x", Before{}, nil, limits, nil)
		if err != nil {
			return err
		}
		for _, name := range []string{"progress", "checkpoint", "updates", "result.json"} {
			if err := os.WriteFile(d.in(name), nil, 0); err != nil {
				return err
			}
		}
		d.news(t, Report{Problems: []string{"progress: permission denied", "checkpoint: permission denied", "updates: permission denied"}})
		_, err = d.Result()
		contains(t, err, "result.json: permission denied")
		if err := os.Chmod(d.Path(), 0); err != nil {
			return err
		}
		d.news(t, Report{})
		return d.Remove()
	})
}

func TestKeepOnAnotherFileSystem(t *testing.T) {
	other := expect.Result(os.MkdirTemp("/dev/shm", "rounddir")).Value(t)
	defer os.RemoveAll(other)
	d := plain(t)
	here := expect.Result(openDir(unix.AT_FDCWD, other, 0)).Value(t)
	defer here.Close()
	if here.device == d.dir.device {
		t.Skip("temporary files are in /dev/shm, too: there is no other file system")
	}
	d.write(t, "scratch/x", "x")
	contains(t, d.KeepScratch(here.File, "x"), "cannot keep scratch/: the target is on another file system than the round's directory: ")
	expect.Result(os.Stat(d.in("scratch/x"))).OK(t)
}
