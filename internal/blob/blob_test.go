package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

func nameOf(content string) task.Blob {
	sum := sha256.Sum256([]byte(content))
	return task.Blob{SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(content))}
}

// registry remembers which blobs were registered.
type registry struct {
	mu  sync.Mutex
	has map[string]string
}

func (r *registry) RegisterBlob(_ context.Context, b task.Blob, token string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.has[b.SHA256] = token
	return nil
}

func newDirect(t *testing.T) Direct {
	t.Helper()
	return Direct{expect.Result(OpenDir(t.TempDir(), "a/b")).Value(t), &registry{has: map[string]string{}}, "me"}
}

func content(t *testing.T, s Store, b task.Blob) string {
	t.Helper()
	var text bytes.Buffer
	expect.NoError(t, s.ReadBlob(t.Context(), b, 0, &text))
	return text.String()
}

// A blob is whole only if all of its bytes are there, and are those of its name. Whatever is sent, what is stored under a
// name is the content of this name.
func TestParts(t *testing.T) {
	t.Parallel()
	s, ctx := newDirect(t), t.Context()
	b := nameOf("hello, world")
	write := func(from int64, part string, want int64) {
		t.Helper()
		expect.Result(s.WriteBlob(ctx, b, from, []byte(part))).Is(t, want)
	}
	write(0, "", 0)
	write(5, "x", 0) // there is a gap
	write(0, "hello", 5)
	write(0, "hello", 5) // the answer to the first call was lost
	write(0, "", 5)
	expect.Result(s.WriteBlob(ctx, b, 5, []byte(", world and more"))).Fails(t, "more than 12 bytes")
	expect.Fails(t, s.ReadBlob(ctx, b, 0, &bytes.Buffer{}), "not stored")
	write(5, ", world", 12)
	write(0, "", 12)
	expect.Equal(t, content(t, s, b), "hello, world")
	expect.Equal(t, s.Registry.(*registry).has[b.SHA256], "me")

	other := nameOf("another")
	expect.Result(s.WriteBlob(ctx, other, 0, []byte("wrong!!"))).Fails(t, "the bytes have the SHA-256")
	expect.Result(s.WriteBlob(ctx, other, 0, nil)).Is(t, 0)
	short := b
	short.Bytes = 3
	expect.Result(s.WriteBlob(ctx, short, 0, nil)).Fails(t, "has 12 bytes, not 3")
	larger := other
	larger.Bytes = 100
	expect.Result(s.WriteBlob(ctx, larger, 0, []byte("more than it has"))).Is(t, 16)
	expect.Result(s.WriteBlob(ctx, other, 0, nil)).Is(t, 0) // what came under a wrong size does not count
	expect.Result(s.WriteBlob(ctx, other, 0, []byte("another"))).Is(t, 7)
	expect.Result(s.WriteBlob(ctx, nameOf(""), 0, nil)).Is(t, 0)
	expect.Equal(t, content(t, s, nameOf("")), "")
}

// Who only asks leaves no file.
func TestQuestions(t *testing.T) {
	t.Parallel()
	s := newDirect(t)
	for _, from := range []int64{0, 7} {
		expect.Result(s.WriteBlob(t.Context(), nameOf("hello"), from, nil)).Is(t, 0)
	}
	expect.Len(t, expect.Result(os.ReadDir(filepath.Join(s.Path, partsDir))).Value(t), 0)
}

// A process that stops while it has a lock blocks nobody longer than he wants to wait.
func TestLocks(t *testing.T) {
	t.Parallel()
	s := newDirect(t)
	b := nameOf("hello")
	expect.Result(s.WriteBlob(t.Context(), b, 0, []byte("he"))).Is(t, 2)
	for _, path := range []string{filepath.Join(s.Path, idFile), s.part(b.SHA256)} {
		f := expect.Result(os.OpenFile(path, os.O_RDWR, 0)).Value(t)
		expect.NoError(t, lock(t.Context(), f, unix.LOCK_EX))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		expect.Result(s.WriteBlob(ctx, b, 2, []byte("llo"))).Fails(t, "another process has locked")
		f.Close()
	}
	expect.NoError(t, s.Locked(t.Context(), func() error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		expect.Fails(t, s.Sweep(ctx, nil), "another process has locked")
		return nil
	}))
	expect.Result(s.WriteBlob(t.Context(), b, 2, []byte("llo"))).Is(t, b.Bytes)
}

// Two processes may remove blobs from one directory at once.
func TestSweepTwice(t *testing.T) {
	t.Parallel()
	s := newDirect(t)
	old := time.Now().Add(-2 * PartKeep)
	b := nameOf("old")
	expect.Result(Put(t.Context(), s, fileWith(t, "old"), func(int64) {})).OK(t)
	expect.Result(s.WriteBlob(t.Context(), nameOf("begun"), 0, []byte("be"))).Is(t, 2)
	for _, path := range []string{s.place(b.SHA256), s.part(nameOf("begun").SHA256)} {
		expect.NoError(t, os.Chtimes(path, old, old))
	}
	expect.NoError(t, s.Sweep(t.Context(), func(_ context.Context, sums ...string) ([]string, error) {
		return sums, os.Remove(s.place(b.SHA256)) // as the other process does
	}))
	expect.Result(s.WriteBlob(t.Context(), nameOf("begun"), 0, nil)).Is(t, 0)
}

// After a crash between two writes, or with a damaged state, an upload continues or begins anew, and is right.
func TestPartsAfterACrash(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(part string) error{
		"no state":      func(part string) error { return os.Remove(part + ".state") },
		"empty state":   func(part string) error { return os.WriteFile(part+".state", nil, 0o600) },
		"wrong state":   func(part string) error { return os.WriteFile(part+".state", bytes.Repeat([]byte("x"), 200), 0o600) },
		"unhashed":      func(part string) error { return appendTo(part, "garbage") },
		"shorter part":  func(part string) error { return os.Truncate(part, 2) },
		"missing part":  os.Remove,
		"nothing amiss": func(string) error { return nil },
	} {
		s, b := newDirect(t), nameOf("hello, world")
		expect.Result(s.WriteBlob(t.Context(), b, 0, []byte("hello"))).Is(t, 5)
		expect.NoError(t, damage(s.part(b.SHA256)), name)
		f := fileWith(t, "hello, world")
		expect.Result(Put(t.Context(), s, f, func(int64) {})).Is(t, b)
		expect.Equal(t, content(t, s, b), "hello, world", name)
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

func fileWith(t *testing.T, text string) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	expect.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	f := expect.Result(os.OpenFile(path, os.O_RDWR, 0)).Value(t)
	t.Cleanup(func() { f.Close() })
	return f
}

// Many clients store the same content at once.
func TestManyWriters(t *testing.T) {
	t.Parallel()
	s := newDirect(t)
	text := strings.Repeat("0123456789", 100_000)
	b := nameOf(text)
	var all sync.WaitGroup
	for range 8 {
		f := fileWith(t, text)
		all.Go(func() {
			for at := int64(0); at < b.Bytes; {
				have, err := s.WriteBlob(t.Context(), b, at, []byte(text[at:min(at+50_001, b.Bytes)]))
				expect.NoError(t, err)
				at = have
			}
			got, err := Put(t.Context(), s, f, func(int64) {})
			expect.NoError(t, err)
			expect.Equal(t, got, b)
		})
	}
	all.Wait()
	expect.True(t, content(t, s, b) == text, "the content")
}

// A client continues a file, and notices bytes that are not those of the name.
func TestGet(t *testing.T) {
	t.Parallel()
	s, b := newDirect(t), nameOf("hello, world")
	expect.Result(Put(t.Context(), s, fileWith(t, "hello, world"), func(int64) {})).Is(t, b)
	for _, begun := range []string{"", "hel", "hello, world"} {
		f := fileWith(t, begun)
		expect.NoError(t, Get(t.Context(), s, b, f), begun)
		expect.Equal(t, string(expect.Result(os.ReadFile(f.Name())).Value(t)), "hello, world")
	}
	f := fileWith(t, "other")
	expect.Fails(t, Get(t.Context(), s, b, f), "the bytes that came have the SHA-256")
	expect.NoError(t, Get(t.Context(), s, b, f))
	expect.NoError(t, os.Remove(s.place(b.SHA256)))
	expect.Fails(t, Get(t.Context(), s, b, fileWith(t, "")), "not stored any more")
}

// Only old blobs that nobody names are removed.
func TestSweep(t *testing.T) {
	t.Parallel()
	s := newDirect(t)
	old := time.Now().Add(-2 * task.BlobKeep.Std())
	for _, text := range []string{"old", "used", "young"} {
		expect.Result(Put(t.Context(), s, fileWith(t, text), func(int64) {})).OK(t)
		if text != "young" {
			expect.NoError(t, os.Chtimes(s.place(nameOf(text).SHA256), old, old))
		}
	}
	expect.NoError(t, s.Sweep(t.Context(), func(_ context.Context, sums ...string) (lost []string, err error) {
		for _, sum := range sums {
			if sum != nameOf("used").SHA256 {
				lost = append(lost, sum)
			}
		}
		return lost, nil
	}))
	for text, want := range map[string]bool{"old": false, "used": true, "young": true} {
		expect.Result(s.Has(t.Context(), nameOf(text))).Is(t, want, text)
	}
}

// A damaged blob is replaced when its content is stored again. Until then, readers see that it is damaged.
func TestDamagedBlobs(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(at string) error{
		"truncated": func(at string) error { return os.Truncate(at, 2) },
		"empty":     func(at string) error { return os.Truncate(at, 0) },
		"longer":    func(at string) error { return appendTo(at, "garbage") },
		"changed":   func(at string) error { return os.WriteFile(at, []byte("hellx, world"), 0o600) },
	} {
		s := newDirect(t)
		b := expect.Result(Put(t.Context(), s, fileWith(t, "hello, world"), func(int64) {})).Value(t)
		at, old := s.place(b.SHA256), time.Now().Add(-2*young)
		expect.NoError(t, os.Chtimes(at, old, old))
		expect.Result(s.Has(t.Context(), b)).Is(t, true) // this process has read it
		expect.NoError(t, damage(at), name)
		expect.NoError(t, os.Chtimes(at, old.Add(1), old.Add(1)))
		expect.Fails(t, Get(t.Context(), s, b, fileWith(t, "")), "the bytes that came have the SHA-256", name)
		hurried, end := context.WithTimeout(t.Context(), time.Hour)
		defer end()
		expect.Result(s.WriteBlob(hurried, b, 0, nil)).Is(t, 0, name)
		expect.Result(s.WriteBlob(t.Context(), b, 0, []byte("hello"))).Is(t, 5, name)
		expect.Fails(t, Get(t.Context(), s, b, fileWith(t, "")), "the bytes that came have the SHA-256", name)
		expect.Result(Put(t.Context(), s, fileWith(t, "hello, world"), func(int64) {})).Is(t, b, name)
		expect.Equal(t, content(t, s, b), "hello, world", name)
		ended, end := context.WithCancel(t.Context())
		end()
		expect.NoError(t, os.Chtimes(at, old, old))
		expect.Result(s.Has(ended, b)).Fails(t, "canceled", name)
	}
}

// A client takes a directory for that of the server only if it has the server's id.
func TestFindDir(t *testing.T) {
	t.Parallel()
	d := newDirect(t).Dir
	expect.Equal(t, *expect.Result(FindDir(d.ID, d.Path)).Value(t), *d)
	for _, c := range [][2]string{{"other", d.Path}, {d.ID, filepath.Join(d.Path, "none")}, {"", ""}} {
		_, err := FindDir(c[0], c[1])
		expect.Fails(t, err, "no directory of blobs")
	}
	again := expect.Result(OpenDir(filepath.Dir(d.Path), "a/b")).Value(t)
	expect.Equal(t, *again, *d)
}

// Many processes may open a new directory at once: all of them see the same id.
func TestOpenTogether(t *testing.T) {
	t.Parallel()
	for range 20 {
		in, ids := t.TempDir(), make(chan string, 16)
		var all sync.WaitGroup
		for range cap(ids) {
			all.Go(func() {
				d, err := OpenDir(in, "n")
				expect.NoError(t, err)
				ids <- d.ID
			})
		}
		all.Wait()
		first := <-ids
		expect.True(t, first != "", "the id is empty")
		for range cap(ids) - 1 {
			expect.Equal(t, <-ids, first)
		}
		d := expect.Result(OpenDir(in, "n")).Value(t)
		expect.Len(t, expect.Result(os.ReadDir(d.Path)).Value(t), 2)
		expect.NoError(t, os.Truncate(filepath.Join(d.Path, idFile), 0))
		expect.Result(OpenDir(in, "n")).Fails(t, "remove it")
	}
}
