package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/bundle"
	"github.com/tdf-framework/tdf/internal/expect"
)

func packedOf(t *testing.T, names ...string) string {
	t.Helper()
	var p bundle.Packer
	for _, name := range names {
		expect.NoError(t, p.Add(name, 0o755, int64(len(name)), strings.NewReader(name)))
	}
	packed, _, err := p.Bundle()
	expect.NoError(t, err)
	return packed
}

func TestUnpack(t *testing.T) {
	dir := t.TempDir()
	expect.NoError(t, os.WriteFile(dir+"/a", []byte("old"), 0o600))
	expect.NoError(t, unpack(dir, packedOf(t, "a", "out/deep/b"), []string{"a", "out/deep/b"}))
	for _, name := range []string{"a", "out/deep/b"} {
		expect.Equal(t, string(expect.Result(os.ReadFile(dir+"/"+name)).Value(t)), name)
		info := expect.Result(os.Stat(dir + "/" + name)).Value(t)
		expect.Equal(t, info.Mode()&0o700, 0o700, name)
	}
	expect.Len(t, expect.Result(os.ReadDir(dir)).Value(t), 2, "a temporary directory is left")
}

// Nothing is written outside of the directory, and if one file cannot be written, none is.
func TestUnpackKeepsToTheDirectory(t *testing.T) {
	outside := t.TempDir()
	expect.NoError(t, os.WriteFile(outside+"/b", []byte("theirs"), 0o644))
	for want, c := range map[string]struct {
		packed string
		make   func(dir string) error
	}{
		"path escapes": {packedOf(t, "a", "out/b"), func(dir string) error { return os.Symlink(outside, dir+"/out") }},
		"directory in the way": {
			packedOf(t, "a", "out/b"),
			func(dir string) error { return os.MkdirAll(dir+"/out/b", 0o755) },
		},
		"out: ":           {packedOf(t, "a", "out/b"), func(dir string) error { return os.WriteFile(dir+"/out", nil, 0o644) }},
		"it is damaged":   {packedOf(t, "a")[:40], func(string) error { return nil }},
		"it is no tar.gz": {"hello", func(string) error { return nil }},
		"Makefile":        {packedOf(t, "a", "Makefile"), func(string) error { return nil }},
	} {
		dir := t.TempDir()
		expect.NoError(t, c.make(dir))
		before := len(expect.Result(os.ReadDir(dir)).Value(t))
		expect.Fails(t, unpack(dir, c.packed, []string{"a", "out"}), want)
		expect.Len(t, expect.Result(os.ReadDir(dir)).Value(t), before, want)
	}
	dir := t.TempDir() // a link in the place of the file is replaced
	expect.NoError(t, os.Symlink(outside+"/b", filepath.Join(dir, "b")))
	expect.NoError(t, unpack(dir, packedOf(t, "b"), []string{"b"}))
	expect.Equal(t, string(expect.Result(os.ReadFile(outside+"/b")).Value(t)), "theirs")
	expect.Equal(t, string(expect.Result(os.ReadFile(dir+"/b")).Value(t)), "b")
}
