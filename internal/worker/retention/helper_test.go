package retention

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/fetch"
	"github.com/tdf-framework/tdf/internal/expect"
)

var must = expect.NoError

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// byDefault returns the policy of a worker with the default configuration.
func byDefault(dir string) Policy {
	return Policy{
		Dir:  dir,
		Keep: week,
	}
}

// keep makes files of 10 bytes with the given age, and records them as a worker does. For a name in a directory x.files
// or x.scratch, it records the directory. Files are of the same round if their names differ only in the extension.
func keep(t testing.TB, dir string, ago time.Duration, names ...string) {
	t.Helper()
	put(t, dir, ago, names...)
	record(t, dir, names...)
}

func record(t testing.TB, dir string, names ...string) {
	t.Helper()
	j := NewJournal(dir)
	defer j.Close()
	for _, name := range names {
		if tree := besideOutput.FindString(name); tree != "" {
			name = strings.TrimSuffix(tree, "/")
		}
		parent := expect.Result(os.Open(filepath.Dir(filepath.Join(dir, name)))).Value(t)
		must(t, j.add(entry{Round: strings.TrimSuffix(name, filepath.Ext(name)), Path: name}, parent, filepath.Base(name)))
		parent.Close()
	}
}

var besideOutput = regexp.MustCompile(`^.*\.(files|scratch)(?:/|$)`)

// put makes files of 10 bytes with the given age.
func put(t testing.TB, dir string, ago time.Duration, names ...string) {
	t.Helper()
	for _, name := range names {
		name = filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, []byte("0123456789"), 0o644))
		age(t, name, ago)
	}
}

func age(t testing.TB, name string, ago time.Duration) {
	t.Helper()
	then := time.Now().Add(-ago)
	must(t, os.Chtimes(name, then, then))
}

// install fetches a program, and sets its last use to a time before now. The program has run.sh and a file of 1000
// bytes.
func install(t testing.TB, dir, program string, ago time.Duration) {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for name, text := range map[string]string{"run.sh": "#!/bin/sh\n", "results/w-1-0.out": strings.Repeat("x", 1000)} {
		must(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text)), ModTime: time.Unix(1, 0)}))
		expect.Result(w.Write([]byte(text))).OK(t)
	}
	must(t, w.Close())
	source := filepath.Join(t.TempDir(), "x.tar")
	must(t, os.WriteFile(source, archive.Bytes(), 0o644))
	expect.Result((&fetch.Fetcher{Dir: dir}).Fetch(t.Context(), program, "rsync:"+source)).OK(t)
	age(t, filepath.Join(dir, program, "results", "w-1-0.out"), 52*week)
	age(t, filepath.Join(dir, program, ".tdf-program.json"), ago)
}

// listLeft returns the files and the empty directories in a directory. It leaves out the files of the fetcher.
func listLeft(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".tdf" {
			return fs.SkipDir
		}
		name := strings.TrimPrefix(path, dir+"/")
		if path == dir || strings.HasPrefix(d.Name(), ".tdf-") {
			return nil
		}
		if parent := filepath.Dir(name) + "/"; slices.Contains(all, parent) {
			all = slices.DeleteFunc(all, func(s string) bool { return s == parent })
		}
		if d.IsDir() {
			name += "/"
		}
		all = append(all, name)
		return nil
	}))
	slices.Sort(all)
	return all
}

// checkLeft applies the policy, and checks which files are left.
func checkLeft(t testing.TB, p Policy, want ...string) Removed {
	t.Helper()
	removed := expect.Result(p.Apply(t.Context())).Value(t)
	slices.Sort(want)
	expect.Equal(t, cmp.Diff(want, listLeft(t, p.Dir)), "", "left (-want +got")
	return removed
}
