package fetch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestMadeByHand(t *testing.T) {
	f := newFetcher(t)
	script := write(t, filepath.Join(f.Dir, "prog", "run.sh"), []byte(goodScript))
	for range 2 {
		p, ok, err := f.Ready("prog", "rsync:/nowhere/run.sh")
		expect.NoError(t, err)
		expect.True(t, ok, p, ok, err)
		expect.Equal(t, p.SHA256, "")
		expect.True(t, !p.Fetched, p, ok, err)
	}
	info, _ := os.Stat(script)
	expect.Equal(t, info.Mode().Perm(), 0o755, "run.sh has mode", info.Mode())
	if p, err := f.Fetch(t.Context(), "prog", "rsync:/nowhere/run.sh"); err != nil || p.Fetched {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestNotReady(t *testing.T) {
	f := newFetcher(t)
	if _, ok, err := f.Ready("prog", "rsync:/x/run.sh"); ok || err != nil {
		t.Error(ok, err)
	}
	write(t, filepath.Join(f.Dir, "prog", "results", "1.out"), nil)
	if _, ok, err := f.Ready("prog", "rsync:/x/run.sh"); ok || err != nil {
		t.Error(ok, err)
	}
}

func TestReadyRefuses(t *testing.T) {
	tests := []struct {
		name string
		make func(t *testing.T, dir string)
		want string
	}{
		{"a file", func(t *testing.T, dir string) { write(t, dir, nil) }, "./prog is not a directory"},
		{"directory", func(t *testing.T, dir string) { must(t, os.MkdirAll(dir+"/run.sh", 0o755)) }, "run.sh is a directory"},
		{"empty", func(t *testing.T, dir string) { write(t, dir+"/run.sh", nil) }, "run.sh is empty (0 bytes)"},
		{"bad record", func(t *testing.T, dir string) {
			write(t, dir+"/run.sh", []byte(goodScript))
			write(t, dir+"/"+recordName, []byte("{"))
		}, "remove the program's directory"},
		{"half a record", func(t *testing.T, dir string) {
			write(t, dir+"/run.sh", []byte(goodScript))
			write(t, dir+"/"+recordName, []byte("{}"))
		}, "incomplete"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFetcher(t)
			tt.make(t, filepath.Join(f.Dir, "prog"))
			fetchFails(t, f, "rsync:/x/run.sh", "fetching rsync:/x/run.sh: check: ", tt.want)
		})
	}
}

// A program of another source that has the same name gets a directory of its own, and so do its copies.
func TestOtherSource(t *testing.T) {
	f := newFetcher(t)
	url := serve(t, []byte(goodScript))
	dirs := map[string]bool{}
	for _, source := range []string{url + "/run.sh?token=hush", url + "/other/run.sh?token=hush", url + "/run.sh?token=else"} {
		p := fetchWorks(t, f, source)
		dirs[p.Dir], dirs[makeCopy(t, f, source).Dir] = true, true
		first, ok, err := f.Ready("prog", url+"/run.sh?token=hush")
		expect.NoError(t, err)
		expect.True(t, ok)
		expect.Equal(t, first.Dir, f.Dir+"/prog")
	}
	expect.Len(t, dirs, 6)
	for name, text := range snapshot(t, f.Dir) {
		if filepath.Base(name) == recordName {
			expect.NotEqual(t, len(text), 0, name)
			expect.NotContains(t, text, "hush", name)
		}
	}
}

// A program may write to its record. The next fetch replaces the program. If the journal is damaged, too, no fetch can do
// that: the error is the fault of this host.
func TestADamagedRecord(t *testing.T) {
	f := newFetcher(t)
	source := serve(t, []byte(goodScript)) + "/run.sh"
	fetchWorks(t, f, source)
	name := filepath.Join(f.Dir, "prog", recordName)
	for what, damage := range map[string]func() error{
		"text":       func() error { return os.WriteFile(name, []byte("x"), 0o644) },
		"incomplete": func() error { return os.WriteFile(name, []byte("{}"), 0o644) },
		"a link":     func() error { return os.Symlink("/dev/null", name) },
	} {
		must(t, os.Remove(name))
		must(t, damage())
		p := expect.Result(f.Fetch(t.Context(), "prog", source)).Value(t)
		expect.True(t, p.Fetched, what, p)
	}
	for _, damaged := range []string{recordName, journalName} {
		write(t, filepath.Join(f.Dir, "prog", damaged), []byte("x"))
	}
	_, err := f.Fetch(t.Context(), "prog", source)
	failed := new(Error)
	expect.MustTrue(t, errors.As(err, &failed), err)
	expect.True(t, failed.Local(), err)
}

// With a Cache, Ready notices at once that run.sh or the record has changed. When the cached answer is too old, Ready
// checks everything.
func TestReadyWithACache(t *testing.T) {
	const source = "rsync:/nowhere/run.sh"
	for name, c := range map[string]struct {
		change func(script, record string) error
		want   bool
	}{
		"nothing":        {func(string, string) error { return nil }, true},
		"removed":        {func(script, _ string) error { return os.Remove(script) }, false},
		"emptied":        {func(script, _ string) error { return os.Truncate(script, 0) }, false},
		"another source": {func(_, record string) error { return os.WriteFile(record, []byte(`{"source":"x","id":"x"}`), 0o644) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			script, record := filepath.Join(dir, "p", runScript), filepath.Join(dir, "p", recordName)
			write(t, script, []byte(goodScript))
			must(t, os.Chmod(script, 0o755))
			f := Fetcher{Dir: dir, Cache: &Cache{}}
			for range 2 {
				if p, ok, err := f.Ready("p", source); !ok || err != nil || p.Dir != filepath.Dir(script) {
					t.Fatalf("%+v, %t, %v", p, ok, err)
				}
			}
			if _, ok := f.Cache.get(question{"p", source, -1}); !ok {
				t.Error("nothing is cached")
			}
			must(t, c.change(script, record))
			if _, ok, _ := f.Ready("p", source); ok != c.want {
				t.Errorf("ready: %t", ok)
			}
			for q, a := range f.Cache.known {
				a.given = time.Now().Add(-2 * trust)
				f.Cache.known[q] = a
			}
			if _, ok := f.Cache.get(question{"p", source, -1}); ok {
				t.Error("the answer is too old")
			}
		})
	}
}
