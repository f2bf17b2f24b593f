package retention

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// Programs replace output files, and directories with output files, by links. Retention does not follow them.
func TestLinks(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	names := []string{"a/results/w-1-0.out", "a/results/w-2-0.files/x", "b/results/w-1-0.out", "c/results/w-3-0.out"}
	keep(t, dir, 52*week, append(names, "d/results/w-4-0.files/x")...)
	for _, name := range []string{"a/results/w-1-0.out", "a/results/w-2-0.files", "b/results", "c"} {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(outside, name)), 0o755))
		must(t, os.Rename(path, filepath.Join(outside, name)))
		must(t, os.Symlink(filepath.Join(outside, name), path))
	}
	must(t, os.Symlink(outside, filepath.Join(dir, "d/results/w-4-0.files/out")))
	age(t, filepath.Join(dir, "d/results/w-4-0.files"), 52*week)
	p := byDefault(dir)
	p.MaxBytes = 1
	checkLeft(t, p, "a/results/w-1-0.out", "a/results/w-2-0.files", "b/results", "c", "d/results/")
	expect.Len(t, listLeft(t, outside), len(names), "outside")
}

// asNobody calls a function as a user who is not root, on a thread that ends afterwards.
func asNobody(t *testing.T, do func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		defer close(done)
		if os.Geteuid() == 0 {
			runtime.LockOSThread()
			const nobody = 65534
			if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, nobody, nobody, nobody); e != 0 {
				done <- e
				return
			}
		}
		do()
	}()
	for err := range done {
		t.Fatal(err)
	}
}

// open4all makes a directory that every user can use.
func open4all(t *testing.T) string {
	t.Helper()
	dir := expect.Result(os.MkdirTemp("", "retention")).Value(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o777))
	return dir
}

// One error reports all directories that cannot be read or changed. Files in other directories are still removed.
func TestUnreadable(t *testing.T) {
	dir := open4all(t)
	asNobody(t, func() {
		keep(t, dir, 52*week, "a/results/w-1-0.out", "b/results/w-1-0.out", "c/results/w-1-0.out", "d/results/w-1-0.out")
		for name, mode := range map[string]fs.FileMode{"a": 0, "b/results": 0, "c/results": 0o500} {
			must(t, os.Chmod(filepath.Join(dir, name), mode))
		}
		removed, err := byDefault(dir).Apply(context.Background())
		for _, name := range []string{"a", "b/results", "c/results"} {
			must(t, os.Chmod(filepath.Join(dir, name), 0o700))
		}
		expect.Fails(t, err, "permission denied (and 2 more errors)")
		expect.Equal(t, removed.Files, 1)
		expect.Len(t, listLeft(t, dir), 4)
	})
}

// A program leaves directories that nobody can read or enter. The directories are still removed, with all files in
// them.
func TestUnreadableFiles(t *testing.T) {
	dir := open4all(t)
	asNobody(t, func() {
		tree := "a/results/w-1-0.files"
		keep(t, dir, 52*week, tree+"/x/y/z", tree+"/u/v")
		for _, name := range []string{tree + "/x/y", tree + "/x", tree + "/u", tree} {
			age(t, filepath.Join(dir, name), 52*week)
			must(t, os.Chmod(filepath.Join(dir, name), 0))
		}
		expect.Equal(t, expect.Result(byDefault(dir).Apply(context.Background())).Value(t).Files, 1)
		got := listLeft(t, dir)
		expect.MustLen(t, got, 1)
		expect.Equal(t, got[0], "a/results/")
	})
}

// Other processes remove and write files between the search and the removal.
func TestFilesThatVanish(t *testing.T) {
	dir := t.TempDir()
	keep(t, dir, 52*week, "a/results/w-1-0.out", "a/results/w-1-0.err", "a/results/w-2-0.out", "b/results/w-1-0.out", "c/results/w-1-0.out")
	p := byDefault(dir)
	asked := false
	p.InUse = func(path string) bool { // Apply calls InUse after the search
		if strings.HasSuffix(path, ".out") && !asked {
			asked = true
			must(t, os.Remove(filepath.Join(dir, "a/results/w-1-0.err")))
			put(t, dir, 0, "a/results/w-2-0.out")
			must(t, os.RemoveAll(filepath.Join(dir, "b")))
			must(t, os.Remove(filepath.Join(dir, "c/results/w-1-0.out")))
			must(t, os.Mkdir(filepath.Join(dir, "c/results/w-1-0.out"), 0o755))
		}
		return false
	}
	expect.Equal(t, checkLeft(t, p, "a/results/w-2-0.out", "c/results/w-1-0.out/").Files, 1)
}

// Two workers clean up at the same time.
func TestTwoWorkersAtOnce(t *testing.T) {
	dir := t.TempDir()
	for _, program := range []string{"a", "b", "c"} {
		install(t, dir, program, 52*week)
		for _, task := range strings.Fields("2 3 4 5 6 7 8 9") {
			keep(t, dir, 52*week, program+"/results/w-"+task+"-0.out", program+"/results/w-"+task+"-0.files/x")
			age(t, filepath.Join(dir, program, "results/w-"+task+"-0.files"), 52*week)
		}
	}
	done := make(chan error)
	for range 4 {
		go func() {
			_, err := byDefault(dir).Apply(context.Background())
			done <- err
		}()
	}
	for range 4 {
		must(t, <-done)
	}
	for _, name := range listLeft(t, dir) {
		if !strings.HasSuffix(name, "/") { // an empty directory is allowed: this worker may have removed the program before the other worker emptied the directory
			t.Error(name)
		}
	}
}
