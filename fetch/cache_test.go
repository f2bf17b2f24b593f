package fetch

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

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
			if _, ok := f.Cache.get(question{"p", source, 0}); !ok {
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
			if _, ok := f.Cache.get(question{"p", source, 0}); ok {
				t.Error("the answer is too old")
			}
		})
	}
}
