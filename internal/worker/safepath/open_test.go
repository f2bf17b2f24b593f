package safepath

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

var must = expect.NoError

const nobody = 65534

func TestMain(m *testing.M) {
	syscall.Umask(0o022) // some tests compare modes
	os.Exit(m.Run())
}

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: only root can make what another user made")
	}
}

func TestOpenMakesMissingDirectories(t *testing.T) {
	base := filepath.Join(t.TempDir(), "base", "deep")
	for range 2 {
		d := expect.Result(Open(base, "a//./b", true)).Value(t)
		d.Close()
	}
	expect.Equal(t, expect.Result(os.Stat(base+"/a/b")).Value(t).Mode(), os.ModeDir|0o755)
	must(t, os.WriteFile(base+"/a/file", nil, 0o644))
	_, err := Open(base, "a/file/x", false)
	expect.MustTrue(t, err != nil, err)
	expect.Equal(t, err.Error(), "mkdir "+base+"/a/file: not a directory")
}

// A link is followed only if root or the worker made it, and no other user could have replaced it.
func TestOpenFollowsNoLinkOfOthers(t *testing.T) {
	needsRoot(t)
	for name, c := range map[string]struct {
		prepare func(base, secret string) error
		want    string // the expected error; "" means that the link is followed
	}{
		"another user's link": {func(base, secret string) error {
			return after(os.Mkdir(base+"/p", 0o755), os.Symlink(secret, base+"/p/results"), os.Lchown(base+"/p/results", nobody, nobody))
		}, "/p/results: it is a symbolic link that another user made, or could have made"},
		"root's link in another user's directory": {func(base, secret string) error {
			return after(os.Mkdir(base+"/p", 0o755), os.Symlink(secret, base+"/p/results"), os.Chown(base+"/p", nobody, nobody))
		}, "it is a symbolic link that another user made"},
		"root's link where all may write": {func(base, secret string) error {
			return after(os.Mkdir(base+"/p", 0o755), os.Symlink(secret, base+"/p/results"), os.Chmod(base+"/p", 0o777))
		}, "it is a symbolic link that another user made"},
		"behind root's link": {func(base, secret string) error {
			return after(os.Mkdir(base+"/other", 0o755), os.Symlink(secret, base+"/other/results"),
				os.Lchown(base+"/other/results", nobody, nobody), os.Symlink(base+"/other", base+"/p"))
		}, "/other/results: it is a symbolic link that another user made"},
		"root's link": {func(base, secret string) error {
			return after(os.Mkdir(base+"/p", 0o755), os.Symlink(secret, base+"/p/results"))
		}, ""},
		"a relative one":   {func(base, _ string) error { return os.Symlink("../secret", base+"/p") }, ""},
		"a link to itself": {func(base, _ string) error { return os.Symlink("p", base+"/p") }, "too many levels of symbolic links"},
		"another user's program": {func(base, _ string) error {
			return after(os.Mkdir(base+"/p", 0o755), os.Chown(base+"/p", nobody, nobody))
		}, ""},
		"a mount of another user": {func(base, _ string) error {
			return after(os.MkdirAll(base+"/p/results", 0o755), os.Chown(base+"/p/results", nobody, nobody))
		}, "/p/results belongs to user 65534"},
		"open to all": {func(base, _ string) error {
			return after(os.MkdirAll(base+"/p/results", 0o755), os.Chmod(base+"/p/results", 0o777))
		}, "all users may write to "},
		"open to a group": {func(base, _ string) error {
			return after(os.MkdirAll(base+"/p/results", 0o755), os.Chown(base+"/p/results", 0, nobody), os.Chmod(base+"/p/results", 0o775))
		}, "group 65534 may write to "},
		"open to all, but each removes its own": {func(base, _ string) error {
			return after(os.MkdirAll(base+"/p/results", 0o755), os.Chmod(base+"/p/results", 0o777|os.ModeSticky))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			base, secret := top+"/base", top+"/secret"
			must(t, after(os.Mkdir(base, 0o755), os.Mkdir(secret, 0o755)))
			must(t, c.prepare(base, secret))
			d, err := Open(base, "p/results", true)
			if err == nil {
				d.Close()
			}
			if c.want == "" {
				expect.NoError(t, err, c.want)
			}
			if c.want != "" {
				expect.Fails(t, err, c.want)
			}
			left, _ := os.ReadDir(secret)
			if c.want != "" {
				expect.Len(t, left, 0)
			}
		})
	}
}

// If programs run as the worker's user, the owner of a directory does not matter.
func TestOpenOfAnotherUserWithoutOwn(t *testing.T) {
	needsRoot(t)
	base := t.TempDir()
	must(t, after(os.Mkdir(base+"/results", 0o755), os.Chown(base+"/results", nobody, nobody)))
	d := expect.Result(Open(base, "results", false)).Value(t)
	d.Close()
	expect.Fails(t, Check(base+"/results"), "belongs to user 65534")
}

func TestOpenLeavesNoDescriptor(t *testing.T) {
	base := t.TempDir()
	must(t, after(os.WriteFile(base+"/file", nil, 0o644), os.Symlink("loop", base+"/loop"), os.Symlink("/", base+"/top")))
	before := descriptors(t)
	for range 10 {
		for _, below := range []string{"file", "loop", "a/b", "top/proc/none/x", "top"} {
			if d, err := Open(base, below, true); err == nil {
				d.Close()
			}
		}
	}
	got := descriptors(t)
	expect.True(t, got <= before, got, "descriptors, and", before, "before")
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("needs /proc")
	}
	return len(all)
}

func after(steps ...error) error {
	for _, err := range steps {
		if err != nil {
			return err
		}
	}
	return nil
}
