package fetch

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestLocalPaths(t *testing.T) {
	f := newFetcher(t)
	name := write(t, filepath.Join(t.TempDir(), "a b", "x.tar"), pack(t, "tar", runItem))
	fetchWorks(t, f, "rsync:"+name)

	f = newFetcher(t)
	write(t, filepath.Join(f.Dir, "src:1", "run.sh"), []byte(goodScript))
	fetchWorks(t, f, "rsync:./src:1/run.sh")

	f = newFetcher(t)
	must(t, os.Symlink(name, filepath.Join(f.Dir, "link.tar")))
	t.Setenv("PATH", t.TempDir()) // without rsync
	fetchWorks(t, f, "rsync:link.tar")
}

func TestLocalPathsThatFail(t *testing.T) {
	f := newFetcher(t)
	f.Limits.Bytes = 10
	must(t, os.MkdirAll(filepath.Join(f.Dir, "dir", "run.sh"), 0o755))
	must(t, syscall.Mkfifo(filepath.Join(f.Dir, "fifo.zip"), 0o644))
	write(t, filepath.Join(f.Dir, "long.zip"), []byte("12345678901"))
	write(t, filepath.Join(f.Dir, "empty.zip"), nil)
	tests := map[string]string{
		"none.zip":   "none.zip: no such file or directory",
		"dir/run.sh": "is a directory; a source is one file",
		"fifo.zip":   "is a named pipe, not a regular file",
		"long.zip":   "more than 10 bytes (max_program_bytes)",
		"empty.zip":  "the source is empty",
	}
	for path, want := range tests {
		fetchFails(t, f, "rsync:"+path, "fetching rsync:"+path+": rsync: ", want)
	}
}
