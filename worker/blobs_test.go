package worker

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/blob"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// keepBlobs gives the namespace a directory of blobs.
func (w *world) keepBlobs() blob.Direct {
	w.Helper()
	dir := expect.Result(blob.OpenDir(w.TempDir(), w.cfg.Namespace)).Value(w)
	must(w, w.store.Blobs.SetBlobPlace(w.Context(), dir.ID, dir.Path))
	return blob.Direct{Dir: dir, Registry: w.store.Blobs}
}

// storeBlob stores a text, as a file at a path.
func (w *world) storeBlob(s blob.Store, text, path string) task.Blob {
	w.Helper()
	at := filepath.Join(w.TempDir(), "file")
	must(w, os.WriteFile(at, []byte(text), 0o600))
	f := expect.Result(os.Open(at)).Value(w)
	defer f.Close()
	b := expect.Result(blob.Put(w.Context(), s, f, func(int64) {})).Value(w)
	b.Path = path
	return b
}

func needing(all ...task.Blob) func(*task.Properties) {
	return func(p *task.Properties) {
		for _, b := range all {
			p.Blobs = append(p.Blobs, b.String())
		}
	}
}

// A command gets the files of its task, and brings large files back as blobs. What it got and did not change stays.
func TestFilesAsBlobs(t *testing.T) {
	w := newWorld(t)
	s := w.keepBlobs()
	small, large := w.storeBlob(s, "hello", "in/a"), w.storeBlob(s, strings.Repeat("x", 2<<20), "b")
	long := "sh -c 'mkdir out; cat in/a b >out/all; echo more >>in/a'"
	id := w.open(long, in(""), fetching("*"), needing(small, large))
	w.runOnce(w.worker())
	expect.Equal(t, w.finished(id).State, tdf.Succeeded, w.task(id).Current().Error)
	expect.Equal(t, w.task(id).Current().Files, task.Files{Count: 2, Bytes: 5 + 2<<20 + 10})
	got := map[string]string{}
	stored := expect.Result(w.store.ReadOne(t.Context(), id, redisstate.Want{Fields: redisstate.Blobs})).Value(t)
	for _, b := range stored.Task.Made {
		var text strings.Builder
		must(t, s.ReadBlob(t.Context(), b, 0, &text))
		got[b.Path] = text.String()
	}
	expect.Equal(t, got, map[string]string{"in/a": "hellomore\n", "out/all": "hello" + strings.Repeat("x", 2<<20)})
	expect.Result(w.store.Blobs.LostBlobs(t.Context(), stored.Task.NamedBlobs()...)).Is(t, nil)
}

// The blobs of an earlier round go when a later one has a result.
func TestBlobsOfAnEarlierRound(t *testing.T) {
	w := newWorld(t)
	w.keepBlobs()
	id := w.open("sh -c 'head -c $(cat "+w.path("size")+") /dev/zero >out'", in(""), fetching("out"))
	for i, size := range []int{2_000_000, 2} {
		must(t, os.WriteFile(w.path("size"), []byte(strconv.Itoa(size)), 0o644))
		w.runOnce(w.worker())
		expect.Equal(t, w.finished(id).State, tdf.Succeeded, w.task(id).Current().Error)
		stored := expect.Result(w.store.ReadOne(t.Context(), id, redisstate.Want{Fields: redisstate.Whole})).Value(t).Task
		expect.Len(t, stored.Made, 1-i, size)
		must(t, w.applied(expect.Result(rules.Reopen(stored)).Value(t)))
	}
}

// A program gets the files of its task in a copy of its own.
func TestBlobsOfAProgram(t *testing.T) {
	w := newWorld(t)
	b := w.storeBlob(w.keepBlobs(), "new", "data")
	must(t, os.MkdirAll(w.path("p"), 0o755))
	must(t, os.WriteFile(w.path("p/data"), []byte("old"), 0o644))
	w.script("p", "#!/bin/sh\ncat data")
	id := w.open("", needing(b))
	w.runOnce(w.worker())
	expect.Equal(t, w.task(id).LastOutput(), "new")
	expect.Equal(t, string(expect.Result(os.ReadFile(w.path("p/data"))).Value(t)), "old")
}

// A blob that is lost fails its task, with an error that says what to do. A worker that has no directory of blobs gives
// the task back for others, and packs what it brings back.
func TestLostBlobs(t *testing.T) {
	w := newWorld(t)
	s := w.keepBlobs()
	b := w.storeBlob(s, "hello", "a")
	id := w.open("cat a", in(""), needing(b))
	must(t, os.RemoveAll(filepath.Join(s.Path, b.SHA256[:2])))
	w.runOnce(w.worker())
	expect.Equal(t, w.finished(id).State, tdf.Failed)
	expect.Contains(t, w.task(id).Current().Error, "the file a: blob "+b.SHA256+": it is not stored any more; store it again, and open the task again")

	must(t, w.store.Blobs.SetBlobPlace(context.Background(), "another", s.Path))
	id = w.open("cat a", in(""), needing(b))
	w.runOnce(w.worker())
	expect.Contains(t, w.task(id).Log, "this machine does not have the server's directory")
	expect.Equal(t, w.task(id).State, tdf.Open)
	id = w.open("sh -c 'head -c 2000000 /dev/zero >out'", in(""), fetching("out"))
	w.runOnce(w.worker())
	expect.Equal(t, w.finished(id).State, tdf.Succeeded)
	expect.Equal(t, len(w.broughtBack(id)), len("out=")+2_000_000)
}

// Files that a task cannot name as blobs come back in Redis, as if there were no blobs.
func TestFilesThatAreNoBlobs(t *testing.T) {
	w := newWorld(t)
	w.keepBlobs()
	for _, script := range []string{
		"head -c 2000000 /dev/zero >a,b",
		"for i in $(seq 900); do head -c 2000 /dev/zero >$(printf %050d $i); done",
	} {
		id := w.open("sh -c '"+script+"'", in(""), fetching("*"))
		w.runOnce(w.worker())
		expect.Equal(t, w.finished(id).State, tdf.Succeeded, w.task(id).Current().Error)
		expect.True(t, len(w.broughtBack(id)) > 1_800_000, "the files are missing")
	}
}
