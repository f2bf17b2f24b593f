package fetch

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/expect"
)

var copying = CopyOptions{Number: 2, MaxBytes: 1 << 20, Busy: func() bool { return false }}

// byHand is the source of a program that the test made by hand.
const byHand = "rsync:/nowhere/run.sh"

// files returns the snapshot of a directory without this package's files.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := snapshot(t, dir)
	for name := range all {
		if strings.HasPrefix(name, reservedPrefix) {
			delete(all, name)
		}
	}
	return all
}

func makeCopy(t *testing.T, f *Fetcher, src string) *Copy {
	t.Helper()
	return expect.Result(f.Copy(t.Context(), "prog", src, copying)).Value(t)
}

// A copy of a fetched program has the files that were fetched or that setup.sh made, with their modes, links and
// times.
func TestCopy(t *testing.T) {
	f := newFetcher(t)
	src := source(t, item{name: "bin/x", body: "1", mode: 0o755}, item{name: "lib/deep/y", body: "2"}, item{name: "link", kind: '2', link: "lib/deep/y"},
		setup("mkdir made; echo 3 >made/z; touch -d 2001-01-01 made/z; chmod 500 made"), runItem)
	fetchWorks(t, f, src)
	want := files(t, f.Dir+"/prog")
	want["made"] = "drwx------" // so that the copy can be removed
	write(t, f.Dir+"/prog/results/1.out", []byte("of a round"))
	c := makeCopy(t, f, src)
	expect.Equal(t, c.Dir, f.Dir+"/prog~2")
	expect.Equal(t, cmp.Diff(want, files(t, c.Dir)), "")
	for _, name := range []string{"made/z", "link"} {
		a, b := expect.Result(os.Lstat(f.Dir+"/prog/"+name)).Value(t), expect.Result(os.Lstat(c.Dir+"/"+name)).Value(t)
		expect.Equal(t, b.ModTime(), a.ModTime(), name)
	}
	_, fresh, err := c.Renew(t.Context())
	expect.NoError(t, err)
	expect.True(t, fresh)
	checkNoStaging(t, f.Dir)
	_, err = f.Fetch(t.Context(), "prog~2", src)
	checkFailed(t, err, "contains ~, with which workers name copies of programs")
}

// A copy of a directory made by hand has all its files except outputs, and nothing from outside.
func TestCopyOfADirectoryMadeByHand(t *testing.T) {
	f := newFetcher(t)
	f.Outputs = "results"
	dir := f.Dir + "/prog"
	write(t, dir+"/run.sh", []byte(goodScript))
	write(t, dir+"/lib/a", []byte("a"))
	write(t, dir+"/results/1.out", []byte("of a round"))
	outside := write(t, t.TempDir()+"/secret", []byte("secret"))
	must(t, os.Symlink(outside, dir+"/out"))
	must(t, os.Symlink("nowhere", dir+"/lib/dangling"))
	must(t, syscall.Mkfifo(dir+"/pipe", 0o644))
	c := makeCopy(t, f, byHand)
	want := files(t, dir)
	delete(want, "pipe")
	delete(want, "results/1.out")
	expect.Equal(t, cmp.Diff(want, files(t, c.Dir)), "")
	for what, change := range map[string]func(){
		"another text":    func() { write(t, dir+"/lib/a", []byte("changed")) },
		"another file":    func() { write(t, dir+"/lib/b", []byte("new")) },
		"a missing file":  func() { must(t, os.Remove(dir+"/lib/a")) },
		"a removed copy":  func() { must(t, os.RemoveAll(c.Dir)) },
		"another program": func() { must(t, os.Rename(write(t, f.Dir+"/x", []byte("#!/bin/sh\necho new\n")), dir+"/run.sh")) },
	} {
		change()
		_, fresh, err := c.Renew(t.Context())
		expect.NoError(t, err, what)
		expect.True(t, !fresh, "no need to copy after", what)
		c = makeCopy(t, f, byHand)
		got := files(t, c.Dir)
		for _, name := range []string{"run.sh", "lib/a", "lib/b"} {
			expect.Equal(t, got[name] == "", files(t, dir)[name] == "", what, name)
		}
	}
}

// A round has left files in a copy, and another round the same names in the original, which was made by hand. The files of
// the original count.
func TestCopyOverWhatARoundHasLeft(t *testing.T) {
	f := newFetcher(t)
	dir := f.Dir + "/prog"
	write(t, dir+"/run.sh", []byte(goodScript))
	c := makeCopy(t, f, byHand)
	write(t, c.Dir+"/in.txt", []byte("of a round in the copy"))
	write(t, c.Dir+"/d", []byte("a file"))
	must(t, os.Symlink(t.TempDir(), c.Dir+"/link"))
	write(t, c.Dir+"/own", []byte("own"))
	write(t, dir+"/in.txt", []byte("of a round in the original"))
	write(t, dir+"/d/x", []byte("x"))
	write(t, dir+"/link/y", []byte("y"))
	_, fresh, err := c.Renew(t.Context())
	expect.NoError(t, err)
	expect.True(t, !fresh, "the original has changed")
	c = makeCopy(t, f, byHand)
	want := files(t, dir)
	want["own"] = files(t, c.Dir)["own"]
	expect.Equal(t, cmp.Diff(want, files(t, c.Dir)), "")
}

// Where a copy cannot be, the error says so, and nothing changes.
func TestCopyFails(t *testing.T) {
	for want, prepare := range map[string]func(t *testing.T, f *Fetcher, with *CopyOptions){
		"copy: ./prog~2 is in the way of a copy of ./prog; remove or rename it": func(t *testing.T, f *Fetcher, _ *CopyOptions) {
			write(t, f.Dir+"/prog~2/run.sh", []byte(goodScript))
		},
		"copy: ./prog~2 is in the way": func(t *testing.T, f *Fetcher, _ *CopyOptions) {
			must(t, os.Symlink(t.TempDir(), f.Dir+"/prog~2"))
		},
		"the program has more than 1 GiB, and its file system cannot clone files; put its data elsewhere": func(_ *testing.T, _ *Fetcher, with *CopyOptions) { with.MaxBytes = 5 },
		"a round of another worker has changed ./prog/lib/a, and runs there": func(t *testing.T, f *Fetcher, with *CopyOptions) {
			write(t, f.Dir+"/prog/lib/a", []byte("changed"))
			with.Busy = func() bool { return true }
		},
	} {
		t.Run(want, func(t *testing.T) {
			f := newFetcher(t)
			src := source(t, item{name: "lib/a", body: "text"}, runItem)
			fetchWorks(t, f, src)
			with := copying
			prepare(t, f, &with)
			before := snapshot(t, f.Dir)
			_, err := f.Copy(t.Context(), "prog", src, with)
			checkFailed(t, err, want)
			checkSame(t, f.Dir, before)
		})
	}
}

// A new copy keeps the files that rounds have made, and replaces the rest, even if a process was killed while it made
// the copy.
func TestCopyAgain(t *testing.T) {
	f := newFetcher(t)
	src := source(t, item{name: "lib/a", body: "text"}, runItem)
	fetchWorks(t, f, src)
	c := makeCopy(t, f, src)
	want := files(t, c.Dir)
	want["mine"] = `-rw-r--r-- "1"`
	for what, damage := range map[string]func(){
		"changed":    func() { write(t, c.Dir+"/lib/a", []byte("changed")) },
		"half-made":  func() { must(t, os.Remove(c.Dir+"/run.sh")); must(t, os.Remove(c.Dir+"/"+recordName)) },
		"without it": func() { must(t, os.RemoveAll(c.Dir)) },
		"no journal": func() { write(t, c.Dir+"/"+journalName, []byte("{")) },
	} {
		write(t, c.Dir+"/mine", []byte("1"))
		damage()
		c = makeCopy(t, f, src)
		got := files(t, c.Dir)
		got["mine"] = want["mine"] // it is lost with the journal
		expect.Equal(t, cmp.Diff(want, got), "", what)
	}
}

// The original stays as long as its copies do.
func TestRemoveCopies(t *testing.T) {
	f, src := fetchOld(t, item{name: "lib/a", body: "123"})
	makeCopy(t, f, src)
	lastUsed(t, f.Dir, 4*week)
	checkRemove(t, f, false)
	all := expect.Result(Programs(f.Dir)).Value(t)
	expect.MustLen(t, all, 2)
	expect.Equal(t, all[0].Name, "prog~2")
	expect.True(t, all[1].LastUse.After(all[0].LastUse), "the original was last used", all[1].LastUse, all[0].LastUse)
	then := time.Now().Add(-4 * week)
	must(t, os.Chtimes(f.Dir+"/prog~2/"+recordName, then, then))
	removed, err := Remove(t.Context(), f.Dir, "prog~2", aWeekAgo())
	expect.NoError(t, err)
	expect.True(t, removed)
	checkRemove(t, f, true)
}

// Each number belongs to one slot of all workers of a directory.
func TestNumbers(t *testing.T) {
	dir := t.TempDir()
	open := func() *Numbers { return expect.Result(OpenNumbers(dir)).Value(t) }
	take := func(n *Numbers, slot, want int) {
		t.Helper()
		expect.Equal(t, expect.Result(n.Take(slot)).Value(t), want)
	}
	a, b := open(), open()
	expect.True(t, expect.Result(a.TakeOriginal()).Value(t), "the first worker is not alone")
	expect.True(t, !expect.Result(b.TakeOriginal()).Value(t), "the second worker is alone")
	expect.True(t, b.OriginalUsed())
	expect.True(t, !a.LeaveOriginal(), "it is still alone")
	take(b, 1, 2)
	take(b, 3, 4)
	expect.True(t, a.LeaveOriginal(), "it is not alone any more")
	expect.True(t, !b.OriginalUsed())
	expect.True(t, !expect.Result(a.TakeOriginal()).Value(t), "it is alone beside copies")
	take(a, 1, 3)
	take(a, 2, 5)
	a.Close()
	c := open()
	expect.True(t, !expect.Result(c.TakeOriginal()).Value(t), "a worker beside copies is alone")
	take(c, 1, 3)
	b.Close()
	c.Close()
	take(open(), 1, 2)
}

// After each round, few files of a large program are checked. All are checked once a second.
func TestChecksOfALargeProgram(t *testing.T) {
	f := newFetcher(t)
	names := make([]string, 3000)
	for i := range names {
		names[i] = "d/" + strconv.Itoa(i)
		write(t, filepath.Join(f.Dir, names[i]), nil)
	}
	large := expect.Result(newTree(f.Dir, append([]string{"d"}, names...), everywhere)).Value(t)
	at := large.whole
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, fewOfCopy}, {time.Millisecond, fewOfCopy}, {20 * time.Millisecond, 200}, {500 * time.Millisecond, mostFiles}, {time.Second, len(names) + 1}} {
		at = at.Add(step.after)
		expect.Equal(t, large.due(at, fewOfCopy), step.want, step.after)
	}
	large.took = time.Minute
	expect.Equal(t, large.due(at.Add(wholePause), fewOfCopy), mostFiles, "a whole check took a minute")
	small := expect.Result(newTree(f.Dir, names[:fewOfCopy], everywhere)).Value(t)
	expect.Equal(t, small.due(small.whole, fewOfCopy), fewOfCopy)
}
