package rounddir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf/internal/expect"
)

// ofNobody makes a round's directory whose program runs as nobody.
func ofNobody(t *testing.T) *Dir {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: only root can run programs as another user")
	}
	d := expect.Result(Create(filepath.Join(t.TempDir(), "rounds", "1"), Before{}, &Owner{nobody, nobody}, limits, nil)).Value(t)
	t.Cleanup(func() {
		must(t, d.Remove())
		expect.Len(t, expect.Result(os.ReadDir(filepath.Dir(d.Path()))).Value(t), 0)
	})
	return d
}

// giveToNobody makes the user nobody the owner of everything in files/, except the targets of links.
func (d *Dir) giveToNobody(t *testing.T) {
	t.Helper()
	must(t, filepath.WalkDir(d.in("files"), func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, nobody, nobody))
	}))
}

func TestSealOfTheWorkersOwn(t *testing.T) {
	d := plain(t)
	d.write(t, "files/x", "x")
	expect.Result(d.Seal(t.Context())).Is(t, Sealed{Path: d.in("files")})
}

// A sealed directory contains all entries that a program left, except entries that cannot be collected.
func TestSeal(t *testing.T) {
	d := ofNobody(t)
	must(t, os.MkdirAll(d.in("files/sub/empty"), 0o755))
	must(t, os.Chmod(d.in("files/sub/empty"), 0o500))
	d.write(t, "files/x", "x")
	d.write(t, "files/sub/y", "y")
	for path, target := range map[string]string{
		"in": "sub/y", "sub/up": "../x", "dangling": "nowhere", "sub/dir": "empty",
		"out": "../x", "absolute": "/etc/passwd", "sub/through": "dir/../../../x", "sub/twice": "../sub/../../x",
	} {
		must(t, os.Symlink(target, d.in("files/"+path)))
	}
	must(t, syscall.Mkfifo(d.in("files/pipe"), 0o666))
	must(t, unix.Mknod(d.in("files/sub/null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	must(t, socket(d.in("files/socket")))
	d.giveToNobody(t)
	got := expect.Result(d.Seal(t.Context())).Value(t)
	expect.Equal(t, got.LeftOut, 7)
	expect.NotEqual(t, got.Example, "")
	want := map[string]string{
		".": "drwxr-xr-x", "x": "-rw-r--r-- x", "sub": "drwxr-xr-x", "sub/y": "-rw-r--r-- y", "sub/empty": "drwx------",
		"in": "Lrwxrwxrwx", "sub/up": "Lrwxrwxrwx", "dangling": "Lrwxrwxrwx", "sub/dir": "Lrwxrwxrwx",
	}
	expect.Equal(t, cmp.Diff(want, content(t, got.Path)), "")
	for _, dir := range []string{got.Path, got.Path + "/sub", got.Path + "/sub/empty"} {
		expect.Equal(t, expect.Result(os.Lstat(dir)).Value(t).Sys().(*syscall.Stat_t).Uid, 0, dir, "belongs to")
	}
	expect.Equal(t, expect.Result(os.Lstat(filepath.Dir(got.Path))).Value(t).Mode(), os.ModeDir|0o700)
}

// A program that still has a directory in files/ open cannot change the sealed files.
func TestProgramsCannotReachSealedFiles(t *testing.T) {
	d := ofNobody(t)
	secret := t.TempDir()
	must(t, os.WriteFile(secret+"/x", []byte("secret"), 0o600))
	must(t, os.Mkdir(d.in("files/sub"), 0o755))
	d.write(t, "files/x", "x")
	d.write(t, "files/sub/x", "y")
	d.giveToNobody(t)
	var held []*os.File
	for _, dir := range []string{"files", "files/sub"} {
		held = append(held, directory(t, d.in(dir)))
	}
	got := expect.Result(d.Seal(t.Context())).Value(t)
	asUser(t, func() error {
		for _, f := range held {
			_ = unix.Unlinkat(int(f.Fd()), "x", 0)
			_ = unix.Symlinkat(secret+"/x", int(f.Fd()), "x")
			_ = unix.Renameat(int(f.Fd()), "sub", int(f.Fd()), "old")
			_ = unix.Symlinkat(secret, int(f.Fd()), "sub")
		}
		return nil
	})
	want := map[string]string{".": "drwxr-xr-x", "x": "-rw-r--r-- x", "sub": "drwxr-xr-x", "sub/x": "-rw-r--r-- y"}
	expect.Equal(t, cmp.Diff(want, content(t, got.Path)), "")
}

// A file that only root can read is never collected. If files/ contains such a file, all of files/ is kept on the
// worker.
func TestSealRefusesFilesOfOthers(t *testing.T) {
	d := ofNobody(t)
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte("secret"), 0o600))
	d.write(t, "files/x", "x")
	d.giveToNobody(t)
	if err := os.Link(secret, d.in("files/hard")); err != nil {
		d.write(t, "files/hard", "secret") // use a file of root instead of a hard link, since the secret is on another file system
	}
	_, err := d.Seal(t.Context())
	contains(t, err, "files/hard: the file belongs to another user")
	keeps(t, d, map[string]string{".": "drwxr-xr-x", "x": "-rw-r--r-- x", "hard": ""})
}

func TestSealRefusesDeepDirectories(t *testing.T) {
	d := ofNobody(t)
	must(t, os.MkdirAll(d.in("files"+strings.Repeat("/d", mostDeep+1)), 0o755))
	d.giveToNobody(t)
	_, err := d.Seal(t.Context())
	contains(t, err, "it is nested more than 100 directories deep")
	keeps(t, d, nil)
}

func TestSealEndsWithItsContext(t *testing.T) {
	d := ofNobody(t)
	d.write(t, "files/x", "x")
	d.giveToNobody(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("it took too long"))
	_, err := d.Seal(ctx)
	contains(t, err, "it took too long")
	keeps(t, d, map[string]string{".": "drwx------", "given": "drwxr-xr-x", "given/x": "-rw-r--r-- x", "files": "drwx------"})
}

// A link in place of files/ is not kept.
func TestKeepRefusesALinkAfterSeal(t *testing.T) {
	d := ofNobody(t)
	to := t.TempDir()
	d.write(t, "files/x", "x")
	kept := directory(t, to)
	must(t, os.Rename(d.in("files"), d.in("old")))
	must(t, os.Symlink("/etc", d.in("files")))
	contains(t, moveDirectory(d.dir, "files", kept, "1.files"), "files is not a directory: the program replaced it")
	left, _ := os.ReadDir(to)
	expect.True(t, len(left) == 0, "kept", left)
}

func keeps(t *testing.T, d *Dir, want map[string]string) {
	t.Helper()
	found, err := d.Files()
	expect.True(t, found, found, err)
	expect.NoError(t, err)
	to := t.TempDir()
	must(t, d.KeepFiles(directory(t, to), "1.files"))
	got := content(t, to+"/1.files")
	if _, ok := want["hard"]; ok {
		want["hard"] = got["hard"]
	}
	diff := cmp.Diff(want, got)
	if want != nil {
		expect.Equal(t, diff, "")
	}
}
