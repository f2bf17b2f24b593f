package fetch

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/expect"
)

const week = 7 * 24 * time.Hour

// lastUsed sets the time of the last use of the program prog.
func lastUsed(t *testing.T, dir string, ago time.Duration) {
	t.Helper()
	then := time.Now().Add(-ago)
	must(t, os.Chtimes(filepath.Join(dir, "prog", recordName), then, then))
}

func lastUse(t *testing.T, dir string) time.Duration {
	t.Helper()
	info := expect.Result(os.Lstat(filepath.Join(dir, "prog", recordName))).Value(t)
	return time.Since(info.ModTime())
}

// fetchOld fetches the program prog, sets the time of its last use to 4 weeks ago, and returns its source.
func fetchOld(t *testing.T, items ...item) (f *Fetcher, src string) {
	t.Helper()
	f = newFetcher(t)
	src = source(t, append(items, runItem)...)
	fetchWorks(t, f, src)
	lastUsed(t, f.Dir, 4*week)
	return f, src
}

func aWeekAgo() time.Time { return time.Now().Add(-week) }

// checkRemove calls Remove. It checks that Remove removes prog if want is true, and that it keeps prog otherwise.
func checkRemove(t *testing.T, f *Fetcher, want bool) {
	t.Helper()
	before := snapshot(t, f.Dir)
	removed, err := Remove(t.Context(), f.Dir, "prog", aWeekAgo())
	expect.NoError(t, err)
	expect.Equal(t, removed, want)
	if !want {
		checkSame(t, f.Dir, before)
	}
}

func TestRemove(t *testing.T) {
	f, src := fetchOld(t, item{name: "lib/a", body: "123"}, item{name: "lib/link", kind: '2', link: "a"}, item{name: "data", body: "4567"})
	checkRemove(t, f, true)
	expect.Equal(t, cmp.Diff(map[string]string{}, snapshot(t, f.Dir)), "")
	checkRemove(t, f, false)
	fetchWorks(t, f, src)
}

// Remove keeps files that runs of the program created, but not empty directories.
func TestRemoveKeepsFilesOfRuns(t *testing.T) {
	f, src := fetchOld(t, item{name: "lib/a", body: "x"}, item{name: "lib/sub/b", body: "x"})
	write(t, f.Dir+"/prog/results/1.out", []byte("kept"))
	write(t, f.Dir+"/prog/lib/own", []byte("kept"))
	must(t, os.MkdirAll(f.Dir+"/prog/empty/too", 0o755))
	checkRemove(t, f, true)
	kept := map[string]string{
		"results": "drwxr-xr-x", "results/1.out": `-rw-r--r-- "kept"`, "lib": "drwxr-xr-x", "lib/own": `-rw-r--r-- "kept"`,
	}
	expect.Equal(t, cmp.Diff(kept, snapshot(t, f.Dir+"/prog")), "")
	checkRemove(t, f, false)
	fetchWorks(t, f, src)
}

// Remove removes files that setup.sh created, except in directories that existed before the fetch.
func TestRemoveFilesOfSetup(t *testing.T) {
	f := newFetcher(t)
	write(t, f.Dir+"/prog/results/1.out", []byte("kept"))
	fetchWorks(t, f, source(t, item{name: "lib/a", body: "x"}, setup("mkdir -p venv/bin; echo x >venv/bin/python; echo x >lib/a.o; echo x >results/2.out"), runItem))
	write(t, f.Dir+"/prog/venv/bin/own", []byte("kept"))
	lastUsed(t, f.Dir, 4*week)
	checkRemove(t, f, true)
	kept := map[string]string{
		"results": "drwxr-xr-x", "results/1.out": `-rw-r--r-- "kept"`, "results/2.out": `-rw-r--r-- "x\n"`,
		"venv": "drwxr-xr-x", "venv/bin": "drwxr-xr-x", "venv/bin/own": `-rw-r--r-- "kept"`,
	}
	expect.Equal(t, cmp.Diff(kept, snapshot(t, f.Dir+"/prog")), "")
}

func TestNotRemoved(t *testing.T) {
	tests := map[string]func(t *testing.T, f *Fetcher){
		"used a day ago":     func(t *testing.T, f *Fetcher) { lastUsed(t, f.Dir, 24*time.Hour) },
		"used in the future": func(t *testing.T, f *Fetcher) { lastUsed(t, f.Dir, -52*week) },
		"made by hand":       func(t *testing.T, f *Fetcher) { must(t, os.Remove(f.Dir+"/prog/"+recordName)) },
		"a link instead of the record": func(t *testing.T, f *Fetcher) {
			must(t, os.Rename(f.Dir+"/prog/"+recordName, f.Dir+"/record"))
			must(t, os.Symlink("../record", f.Dir+"/prog/"+recordName))
		},
		"missing": func(t *testing.T, f *Fetcher) { must(t, os.RemoveAll(f.Dir+"/prog")) },
		"being fetched": func(t *testing.T, f *Fetcher) {
			l := expect.Result(tryLock(filepath.Join(f.Dir, locksDir, "prog"))).Value(t)
			t.Cleanup(func() { l.Close() })
		},
		"a link to another": func(t *testing.T, f *Fetcher) {
			must(t, os.Rename(f.Dir+"/prog", f.Dir+"/other"))
			must(t, os.Symlink("other", f.Dir+"/prog"))
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			f, _ := fetchOld(t)
			change(t, f)
			checkRemove(t, f, false)
		})
	}
}

// Remove keeps a program that was used within UsedFor, even if olderThan is a later time.
func TestRemoveKeepsUsedPrograms(t *testing.T) {
	for ago, want := range map[time.Duration]bool{UsedFor - time.Minute: false, UsedFor + time.Minute: true} {
		f, _ := fetchOld(t)
		lastUsed(t, f.Dir, ago)
		removed, err := Remove(t.Context(), f.Dir, "prog", time.Now())
		expect.Equal(t, removed, want, "used", ago)
		expect.NoError(t, err, "used", ago)
	}
}

func TestRemoveRefuses(t *testing.T) {
	f, _ := fetchOld(t)
	before := snapshot(t, f.Dir)
	for _, name := range []string{"", ".", "..", ".tdf", "../x", "a/b", "-x", "a\x00"} {
		if removed, err := Remove(t.Context(), f.Dir, name, aWeekAgo()); removed || err == nil {
			t.Errorf("%q: %v, %v", name, removed, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if removed, err := Remove(ctx, f.Dir, "prog", aWeekAgo()); removed || err == nil {
		t.Errorf("cancelled: %v, %v", removed, err)
	}
	checkSame(t, f.Dir, before)
}

// If a program has damaged its journal, Remove fails and removes no file.
func TestRemoveWithABadJournal(t *testing.T) {
	const wantError = "remove program prog: read .tdf-install.json: "
	tests := map[string]func(t *testing.T, journal string){
		"no file": func(*testing.T, string) {},
		"garbage": func(t *testing.T, journal string) { write(t, journal, []byte("{")) },
		"half":    func(t *testing.T, journal string) { write(t, journal, []byte(`{"done":false}`)) },
		"pipe":    func(t *testing.T, journal string) { must(t, syscall.Mkfifo(journal, 0o644)) },
		"link":    func(t *testing.T, journal string) { must(t, os.Symlink("/dev/zero", journal)) },
		"endless": func(t *testing.T, journal string) { write(t, journal, nil); must(t, os.Truncate(journal, 1<<40)) },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			f, _ := fetchOld(t)
			must(t, os.Remove(f.Dir+"/prog/"+journalName))
			change(t, f.Dir+"/prog/"+journalName)
			_, err := Remove(t.Context(), f.Dir, "prog", aWeekAgo())
			checkFailed(t, err, wantError, "remove the program's directory")
			expect.Result(os.Lstat(f.Dir + "/prog/run.sh")).OK(t)
		})
	}
}

func TestRemoveStaysInside(t *testing.T) {
	f, _ := fetchOld(t, item{name: "lib/a", body: "x"})
	outside := t.TempDir()
	write(t, outside+"/a", []byte("precious"))
	must(t, os.RemoveAll(f.Dir+"/prog/lib"))
	must(t, os.Symlink(outside, f.Dir+"/prog/lib"))
	write(t, f.Dir+"/prog/"+journalName, []byte(`{"done":true,"files":["lib","lib/a","../precious","/precious"]}`))
	write(t, f.Dir+"/precious", nil)
	_, err := Remove(t.Context(), f.Dir, "prog", aWeekAgo())
	checkFailed(t, err, "is not a path below the program's directory")
	for _, name := range []string{outside + "/a", f.Dir + "/precious"} {
		expect.Result(os.Lstat(name)).OK(t)
	}
}

// If a removal is interrupted at any step, the program is not ready. A fetch then completes the program, or another
// removal removes the remaining files.
func TestRemoveIsInterrupted(t *testing.T) {
	begin := func(t *testing.T) (*Fetcher, string, *os.Root, *journal) {
		f, src := fetchOld(t, item{name: "lib/a", body: "x"}, item{name: "lib/b", body: "x"})
		root := expect.Result(os.OpenRoot(f.Dir + "/prog")).Value(t)
		t.Cleanup(func() { root.Close() })
		name, info, err := recordIn(root)
		must(t, err)
		free, err := takeRecord(root, name, info)
		expect.MustTrue(t, free, free, err)
		expect.NoError(t, err)
		o := expect.Result(journalIn(root)).Value(t)
		return f, src, root, o
	}
	steps := map[string]func(t *testing.T, root *os.Root, o *journal){
		"the record is taken": func(*testing.T, *os.Root, *journal) {},
		"run.sh is gone":      func(t *testing.T, root *os.Root, _ *journal) { must(t, root.Remove(runScript)) },
		"a file is gone": func(t *testing.T, root *os.Root, _ *journal) {
			must(t, root.Remove(runScript))
			must(t, root.Remove("lib/b"))
		},
		"the files are gone": func(t *testing.T, root *os.Root, o *journal) { must(t, o.removeFiles(root)) },
		"the record is gone": func(t *testing.T, root *os.Root, o *journal) {
			must(t, o.removeFiles(root))
			must(t, root.Remove(removedName))
		},
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			f, src, root, o := begin(t)
			step(t, root, o)
			_, ok, err := f.Ready("prog", src)
			expect.True(t, !ok, "ready", ok, err)
			expect.NoError(t, err)
			fetchWorks(t, f, src)
			got := snapshot(t, f.Dir+"/prog")
			delete(got, "lib")
			expect.Equal(t, cmp.Diff([]string{".tdf-install.json", ".tdf-program.json", "lib/a", "lib/b", "run.sh"}, sorted(got)), "")
		})
		t.Run(name+", removed again", func(t *testing.T) {
			f, _, root, o := begin(t)
			step(t, root, o)
			known := name != "the record is gone" // Remove ignores a program without a record, so the journal stays until the next fetch
			checkRemove(t, f, known)
			expect.Equal(t, known, len(snapshot(t, f.Dir)) == 0)
		})
	}
}

func sorted(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// A removal renames the record of a program. If a worker calls Ready just before the renaming, the program is kept.
// After the renaming, the program is not ready.
func TestRemoveDuringUse(t *testing.T) {
	f, src := fetchOld(t)
	root := expect.Result(os.OpenRoot(f.Dir + "/prog")).Value(t)
	defer root.Close()
	name, info, err := recordIn(root)
	must(t, err)
	if _, ok, err := f.Ready("prog", src); !ok || err != nil {
		t.Fatal(ok, err)
	}
	free, err := takeRecord(root, name, info)
	expect.True(t, !free, "the record of a used program was taken", free, err)
	expect.NoError(t, err)
	checkRemove(t, f, false)
	lastUsed(t, f.Dir, 4*week)
	name, info, err = recordIn(root)
	must(t, err)
	expect.True(t, expect.Result(takeRecord(root, name, info)).Value(t))
	if _, ok, err := f.Ready("prog", src); ok || err != nil {
		t.Errorf("ready: %v, %v", ok, err)
	}
}

// Ready records the last use, at most once an hour. If the recorded time is in the future, Ready sets it to now.
func TestReadyRecordsTheLastUse(t *testing.T) {
	f, src := fetchOld(t)
	for ago, written := range map[time.Duration]bool{
		4 * week: true, touchEvery + time.Minute: true, touchEvery - time.Minute: false, -time.Hour: true, -52 * week: true,
	} {
		lastUsed(t, f.Dir, ago)
		_, ok, err := f.Ready("prog", src)
		expect.MustTrue(t, ok, ok, err)
		expect.NoError(t, err)
		expect.Equal(t, lastUse(t, f.Dir).Abs() < time.Minute, written, ago)
	}
	lastUsed(t, f.Dir, week)
	Touch(f.Dir, "prog")
	Touch(f.Dir, "../prog")
	Touch(f.Dir, "other")
	now := lastUse(t, f.Dir)
	expect.True(t, now <= time.Minute, now)
}

func TestTouchFollowsNoLink(t *testing.T) {
	f, _ := fetchOld(t)
	outside := write(t, t.TempDir()+"/x", nil)
	then := time.Now().Add(-week)
	must(t, os.Chtimes(outside, then, then))
	must(t, os.Remove(f.Dir+"/prog/"+recordName))
	must(t, os.Symlink(outside, f.Dir+"/prog/"+recordName))
	Touch(f.Dir, "prog")
	info, _ := os.Stat(outside)
	expect.True(t, time.Since(info.ModTime()) >= time.Hour, "touched through a link")
}

func TestPrograms(t *testing.T) {
	f, _ := fetchOld(t, item{name: "lib/a", body: "123"})
	write(t, f.Dir+"/prog/results/1.out", []byte("not counted"))
	write(t, f.Dir+"/byhand/run.sh", []byte(goodScript))
	write(t, f.Dir+"/file", nil)
	must(t, os.Symlink("prog", f.Dir+"/link"))
	got := expect.Result(Programs(f.Dir)).Value(t)
	expect.MustLen(t, got, 1)
	p := got[0]
	expect.Equal(t, p.Name, "prog")
	expect.Equal(t, time.Since(p.LastUse).Round(time.Minute), 4*week)
	expect.Result(Programs(f.Dir+"/nothing")).Fails(t, "", "no error for a missing directory")
}
