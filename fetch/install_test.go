package fetch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/expect"
)

// withoutOwn removes the files that belong to package fetch from a snapshot.
func withoutOwn(s map[string]string) map[string]string {
	delete(s, recordName)
	delete(s, journalName)
	return s
}

func source(t *testing.T, items ...item) string {
	t.Helper()
	return "rsync:" + write(t, filepath.Join(t.TempDir(), "x.tar"), packTar(t, items...))
}

func TestExistingFilesAreKept(t *testing.T) {
	f := newFetcher(t)
	write(t, f.Dir+"/prog/results/1.out", []byte("kept"))
	write(t, f.Dir+"/prog/notes", []byte("kept"))
	p := fetchWorks(t, f, source(t, item{name: "results/README", body: "x"}, item{name: "lib/a", body: "x"}, runItem))
	want := map[string]string{
		"results": "drwxr-xr-x", "results/1.out": `-rw-r--r-- "kept"`, "results/README": `-rw-r--r-- "x"`,
		"notes": `-rw-r--r-- "kept"`, "lib": "drwxr-xr-x", "lib/a": `-rw-r--r-- "x"`,
		"run.sh": `-rwxr-xr-x "#!/bin/sh\necho it runs\n"`,
	}
	expect.Equal(t, cmp.Diff(want, withoutOwn(snapshot(t, p.Dir))), "")
}

func TestConflicts(t *testing.T) {
	f := newFetcher(t)
	write(t, f.Dir+"/prog/data/a", []byte("mine"))
	must(t, os.Symlink("data", f.Dir+"/prog/link"))
	tests := map[string]item{
		"data/a": {name: "data/a", body: "theirs"},
		"data":   {name: "data", body: "theirs"},
		"link":   {name: "link/a", body: "theirs"},
	}
	for name, it := range tests {
		fetchFails(t, f, source(t, it, runItem), "install: ./prog/"+name+" exists already, and the source contains it, too")
	}
}

func TestLinkedProgramDirectory(t *testing.T) {
	f := newFetcher(t)
	must(t, os.Mkdir(f.Dir+"/other", 0o755))
	must(t, os.Symlink("other", f.Dir+"/prog"))
	fetchFails(t, f, source(t, runItem), "install: ./prog is not a directory")
}

// If a user has removed run.sh, a fetch fetches the program again. It keeps files that runs of the program created.
func TestFetchAfterRunScriptIsRemoved(t *testing.T) {
	f := newFetcher(t)
	src := source(t, item{name: "data/a", body: "x"}, item{name: "gone", body: "x"}, runItem)
	p := fetchWorks(t, f, src)
	write(t, p.Dir+"/data/own", []byte("kept"))
	write(t, p.Dir+"/data/a", []byte("changed"))
	must(t, os.Remove(p.Dir+"/gone"))
	must(t, os.Remove(p.Dir+"/run.sh"))
	p = fetchWorks(t, f, src)
	want := map[string]string{
		"data": "drwxr-xr-x", "data/own": `-rw-r--r-- "kept"`, "data/a": `-rw-r--r-- "x"`, "gone": `-rw-r--r-- "x"`,
		"run.sh": `-rwxr-xr-x "#!/bin/sh\necho it runs\n"`,
	}
	expect.Equal(t, cmp.Diff(want, withoutOwn(snapshot(t, p.Dir))), "")
}

// Undoing a fetch does not follow links that the program created in its directory.
func TestUndoStaysInside(t *testing.T) {
	f := newFetcher(t)
	outside := t.TempDir()
	write(t, outside+"/a", []byte("precious"))
	p := fetchWorks(t, f, source(t, item{name: "data/a", body: "x"}, runItem))
	must(t, os.RemoveAll(p.Dir+"/data"))
	must(t, os.Symlink(outside, p.Dir+"/data"))
	must(t, os.Remove(p.Dir+"/run.sh"))
	_, _ = f.Fetch(t.Context(), "prog", source(t, runItem))
	expect.Equal(t, string(expect.Result(os.ReadFile(outside+"/a")).Value(t)), "precious")
}

func TestBadJournal(t *testing.T) {
	f := newFetcher(t)
	write(t, f.Dir+"/prog/"+journalName, []byte("{"))
	fetchFails(t, f, source(t, runItem), "install: read "+journalName+": ", "; remove the program's directory")
}

func TestSweepOfStagingDirectories(t *testing.T) {
	f := newFetcher(t)
	for _, program := range []string{"prog", "dead", "busy"} {
		write(t, filepath.Join(f.Dir, stagingDir, program, "payload"), nil)
	}
	must(t, os.MkdirAll(filepath.Join(f.Dir, locksDir), 0o755))
	l := expect.Result(tryLock(filepath.Join(f.Dir, locksDir, "busy"))).Value(t)
	expect.MustTrue(t, l != nil, l)
	defer l.Close()
	expect.Result(f.Fetch(t.Context(), "prog", source(t, runItem))).OK(t)
	got := snapshot(t, filepath.Join(f.Dir, stagingDir))
	expect.Equal(t, cmp.Diff(map[string]string{"busy": "drwxr-xr-x", "busy/payload": `-rw-r--r-- ""`}, got), "")
}
