package safepath

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// The target of a link is read only if root or the worker made the link, and no other user could have replaced it.
func TestOpenFileFollowsNoLinkOfOthers(t *testing.T) {
	needsRoot(t)
	const another = "it is a symbolic link that another user made, or could have made; "
	for name, c := range map[string]struct {
		prepare func(base, secret string) error
		want    string // the expected error; "" means that the file is read
	}{
		"another user's link": {func(base, secret string) error {
			return after(os.Symlink(secret, base+"/p/env"), os.Lchown(base+"/p/env", nobody, nobody))
		}, another + "copy the file there"},
		"root's link in another user's directory": {func(base, secret string) error {
			return after(os.Symlink(secret, base+"/p/env"), os.Chown(base+"/p", nobody, nobody))
		}, another + "copy the file there"},
		"another user's link to a directory": {func(base, secret string) error {
			return after(os.Remove(base+"/p"), os.Symlink(base+"/..", base+"/p"), os.Lchown(base+"/p", nobody, nobody))
		}, another + "make it a directory"},
		"behind root's link": {func(base, secret string) error {
			return after(os.Symlink(secret, base+"/link"), os.Lchown(base+"/link", nobody, nobody), os.Symlink("../link", base+"/p/env"))
		}, another + "copy the file there"},
		"another name of root's file": {func(base, secret string) error {
			return after(os.Link(secret, base+"/p/env"), os.Chown(base+"/p", nobody, nobody))
		}, "/p/env: the file has 2 names, and another user could have made one of them"},
		"another name in root's directory": {func(base, secret string) error { return os.Link(secret, base+"/p/env") }, ""},
		"root's link":                      {func(base, secret string) error { return os.Symlink(secret, base+"/p/env") }, ""},
		"a relative one":                   {func(base, _ string) error { return os.Symlink("../../env", base+"/p/env") }, ""},
		"a file in another user's directory": {func(base, _ string) error {
			return after(os.WriteFile(base+"/p/env", []byte("secret"), 0o600), os.Chown(base+"/p", nobody, nobody))
		}, ""},
		"a link to itself": {func(base, _ string) error { return os.Symlink("env", base+"/p/env") }, "too many levels of symbolic links"},
		"a file on the way": {func(base, _ string) error {
			return after(os.Remove(base+"/p"), os.WriteFile(base+"/p", nil, 0o600))
		}, "/p: not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			base, secret := top+"/base", top+"/env"
			must(t, after(os.MkdirAll(base+"/p", 0o755), os.WriteFile(secret, []byte("secret"), 0o600)))
			must(t, c.prepare(base, secret))
			f, err := OpenFile(base, "p/env")
			if c.want != "" {
				expect.Equal(t, f, nil, c.want)
				expect.Fails(t, err, c.want)
				return
			}
			must(t, err)
			defer f.Close()
			expect.Equal(t, string(expect.Result(io.ReadAll(f)).Value(t)), "secret")
			expect.Equal(t, f.Name(), base+"/p/env")
		})
	}
}

func TestOpenFileMissing(t *testing.T) {
	base := t.TempDir()
	must(t, after(os.Mkdir(base+"/p", 0o755), os.Symlink("none", base+"/p/link"), os.Symlink("p", base+"/to")))
	for below, there := range map[string]bool{"env": false, "p/env": false, "none/env": false, "to/env": false, "p/link": true, "to/link": true} {
		f, err := OpenFile(base, below)
		expect.Equal(t, f, nil, below)
		expect.Fails(t, err, "", below)
		expect.NotEqual(t, errors.Is(err, fs.ErrNotExist), there, below)
		if there {
			expect.True(t, strings.HasSuffix(err.Error(), below+": it is a link to a missing file"), err)
		}
	}
	left, err := os.ReadDir(base)
	expect.True(t, len(left) == 2, "made there", left, err)
}

// OpenFile also opens a directory. The caller must check the kind of the file.
func TestOpenFileOfADirectory(t *testing.T) {
	base := t.TempDir()
	must(t, after(os.Mkdir(base+"/p", 0o755), os.Symlink("p/", base+"/link")))
	for _, below := range []string{"p", "link"} {
		f := expect.Result(OpenFile(base, below)).Value(t)
		info := expect.Result(f.Stat()).Value(t)
		expect.True(t, info.IsDir(), below, info)
		f.Close()
	}
}

func TestOpenFileLeavesNoDescriptor(t *testing.T) {
	base := t.TempDir()
	must(t, after(os.WriteFile(base+"/file", nil, 0o644), os.Symlink("loop", base+"/loop"), os.Symlink("/", base+"/top")))
	before := descriptors(t)
	for range 10 {
		for _, below := range []string{"file", "loop", "a/b", "file/x", "top/proc/none/x", "none"} {
			if f, err := OpenFile(base, below); err == nil {
				f.Close()
			}
		}
	}
	got := descriptors(t)
	expect.True(t, got <= before, got, "descriptors, and", before, "before")
}
