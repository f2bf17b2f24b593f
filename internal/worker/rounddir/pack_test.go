package rounddir

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/bundle"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

func scratch(t *testing.T) (*Dir, string) {
	t.Helper()
	d := expect.Result(Create(filepath.Join(t.TempDir(), "d"), Before{}, nil, Limits{}, nil)).Value(t)
	t.Cleanup(func() { _ = d.Remove() })
	return d, filepath.Join(d.Path(), ScratchDir)
}

func put(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		expect.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		expect.NoError(t, os.WriteFile(path, []byte(name), 0o644))
	}
}

func packedNames(t *testing.T, packed string, patterns ...string) string {
	t.Helper()
	var names []string
	err := bundle.Read(packed, patterns, bundle.MaxBytes, func(name string, _ fs.FileMode, content io.Reader) error {
		text, err := io.ReadAll(content)
		expect.Equal(t, string(text), name)
		names = append(names, name)
		return err
	})
	expect.NoError(t, err)
	return strings.Join(names, " ")
}

// The patterns match as those of a shell, ** matches any directories, and a directory stands for all files in it.
func TestPack(t *testing.T) {
	d, dir := scratch(t)
	put(t, dir, "log", ".hidden", "out/a.csv", "out/b.txt", "out/deep/c.csv", "out/deep/er/d.csv", "out/.git/x", "other/a.csv")
	for patterns, want := range map[string]string{
		"log":             "log",
		"*":               "log other/a.csv out/a.csv out/b.txt out/deep/c.csv out/deep/er/d.csv",
		".*":              ".hidden",
		"**/.git":         "out/.git/x",
		"out/*.csv":       "out/a.csv",
		"*/*.csv,log":     "log other/a.csv out/a.csv",
		"**/*.csv":        "other/a.csv out/a.csv out/deep/c.csv out/deep/er/d.csv",
		"out/**/d.csv":    "out/deep/er/d.csv",
		"out/deep":        "out/deep/c.csv out/deep/er/d.csv",
		"out/[ab].?*":     "out/a.csv out/b.txt",
		"**/**/**/er/**":  "out/deep/er/d.csv",
		"out/a.csv,out/*": "out/a.csv out/b.txt out/deep/c.csv out/deep/er/d.csv",
	} {
		packed, files, err := pack(d, strings.Split(patterns, ","), 1000, nil)
		expect.NoError(t, err, patterns)
		expect.Equal(t, packedNames(t, packed, strings.Split(patterns, ",")...), want, patterns)
		expect.Equal(t, files.Count, len(strings.Fields(want)), patterns)
	}
	packed, _, err := pack(d, []string{"*"}, 1000, func(name string) bool { return name != "log" })
	expect.NoError(t, err)
	expect.Equal(t, packedNames(t, packed, "*"), "log")
}

func TestPackFails(t *testing.T) {
	d, dir := scratch(t)
	put(t, dir, "a", "out/b")
	expect.NoError(t, os.Symlink("/etc/passwd", dir+"/link"))
	expect.NoError(t, os.Symlink("/etc", dir+"/etc"))
	expect.NoError(t, os.Symlink("out", dir+"/in"))
	expect.NoError(t, syscall.Mkfifo(dir+"/pipe", 0o644))
	for pattern, want := range map[string]string{
		"x/*":        "no file matches x/*; a pattern is relative to the directory in which the program begins",
		"link":       "no file matches link, except link, which is no regular file",
		"pipe":       "no file matches pipe, except pipe, which is no regular file",
		"etc/passwd": "no file matches etc/passwd",
		"in/b":       "no file matches in/b",
		"**/*":       "the files that match (2) have 6 bytes, more than max_fetch (5); keep blobs (docs/blobs.md), fetch fewer files, or raise [worker] max_fetch",
		"../*":       "no file matches ../*",
	} {
		packed, files, err := pack(d, []string{pattern}, 5, nil)
		expect.Fails(t, err, want, pattern)
		expect.Equal(t, packed, "", pattern)
		expect.Equal(t, files, task.Files{}, pattern)
	}
	expect.NoError(t, os.Rename(dir, dir+"2"))
	expect.NoError(t, os.Symlink("/etc", dir))
	_, _, err := pack(d, []string{"passwd"}, 1<<20, nil)
	expect.Fails(t, err, "scratch")
	_, _, err = pack(InMemory(Before{}, limits, nil), []string{"x"}, 5, nil)
	expect.Fails(t, err, "no file matches x")
}

// A directory that the program has closed to itself, and hundreds of stars, do no harm.
func TestPackOddDirectories(t *testing.T) {
	d, dir := scratch(t)
	put(t, dir, "out/a", strings.Repeat("d/", 60)+"x")
	expect.NoError(t, os.Chmod(dir+"/out", 0))
	packed, _, err := pack(d, []string{"out/a"}, 1000, nil)
	expect.NoError(t, err)
	expect.Equal(t, packedNames(t, packed, "out/a"), "out/a")
	stars := strings.Repeat("**/", 340) + "y"
	_, _, err = pack(d, []string{stars}, 1000, nil)
	expect.Fails(t, err, "no file matches")
	put(t, dir, strings.Repeat("e/", 110)+"x")
	_, _, err = pack(d, []string{"e"}, 1000, nil)
	expect.Fails(t, err, "nested more than 100 directories deep")
}

// pack finds and packs files.
func pack(d *Dir, patterns []string, most int64, skip func(name string) bool) (string, task.Files, error) {
	found, err := d.Find(patterns, skip)
	if err != nil {
		return "", task.Files{}, err
	}
	return found.Pack(most)
}
