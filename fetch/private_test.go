package fetch

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf/internal/expect"
)

const nobody = 65534 // user id

// Other users can neither hold a lock nor read the staging directory, even if an earlier version of TDF gave them
// access.
func TestLocksArePrivate(t *testing.T) {
	for _, open := range []bool{false, true} {
		f := newFetcher(t)
		if open {
			must(t, os.MkdirAll(filepath.Join(f.Dir, locksDir), 0o777))
			must(t, os.MkdirAll(filepath.Join(f.Dir, stagingDir), 0o777))
			must(t, os.WriteFile(filepath.Join(f.Dir, locksDir, "prog"), nil, 0o644))
		}
		fetchWorks(t, f, source(t, runItem))
		for name, want := range map[string]os.FileMode{privateDir: 0o755, locksDir: 0o700, stagingDir: 0o711, locksDir + "/prog": 0o600} {
			expect.Equal(t, expect.Result(os.Lstat(filepath.Join(f.Dir, name))).Value(t).Mode().Perm(), want, name)
		}
		lastUsed(t, f.Dir, 4*week)
		checkRemove(t, f, true)
	}
}

// If a lock file is a link or a pipe, a fetch fails at once. It does not follow the link.
func TestLockIsRegularFile(t *testing.T) {
	f := newFetcher(t)
	outside := filepath.Join(t.TempDir(), "made")
	must(t, os.MkdirAll(filepath.Join(f.Dir, locksDir), 0o700))
	lock := filepath.Join(f.Dir, locksDir, "prog")
	must(t, os.Symlink(outside, lock))
	expect.Result(f.Fetch(t.Context(), "prog", source(t, runItem))).Fails(t, "", "no error")
	expect.Result(os.Lstat(outside)).Fails(t, "", "a file was made through a link")
	must(t, os.Remove(lock))
	must(t, unix.Mkfifo(lock, 0o600))
	expect.Result(f.Fetch(t.Context(), "prog", source(t, runItem))).Fails(t, "", "no error")
}

// If run.sh is a symbolic or hard link, a fetch does not change the mode of the link's target.
func TestModesOfLinkTargetsAreKept(t *testing.T) {
	for name, link := range map[string]func(string, string) error{"symbolic": os.Symlink, "hard": os.Link} {
		t.Run(name, func(t *testing.T) {
			f := newFetcher(t)
			target := write(t, filepath.Join(t.TempDir(), "target"), []byte(goodScript))
			must(t, os.Mkdir(f.Dir+"/prog", 0o755))
			must(t, link(target, f.Dir+"/prog/run.sh"))
			fetchFails(t, f, "rsync:/x/run.sh", "check: ", "make that file executable (chmod +x)")
			expect.Equal(t, expect.Result(os.Stat(target)).Value(t).Mode().Perm(), 0o644)
			must(t, os.Chmod(target, 0o755)) // follow the advice in the error
			_, ok, err := f.Ready("prog", "rsync:/x/run.sh")
			expect.True(t, ok, ok, err)
			expect.NoError(t, err)
		})
	}
}

// If a pipe has replaced a file, a fetch does not wait for a writer of the pipe.
func TestPipesInsteadOfFiles(t *testing.T) {
	for _, name := range []string{"run.sh", recordName, journalName} {
		f := newFetcher(t)
		write(t, f.Dir+"/prog/data", nil)
		must(t, unix.Mkfifo(f.Dir+"/prog/"+name, 0o755))
		if _, err := f.Fetch(t.Context(), "prog", source(t, runItem)); err == nil && name != recordName {
			t.Errorf("%s: no error", name)
		}
	}
	script := filepath.Join(t.TempDir(), "run.sh")
	must(t, unix.Mkfifo(script, 0o600))
	j := &job{}
	if err := j.ensureExecutable(script, 0o600); err == nil { // the file became a pipe after the caller's stat
		t.Error("no error")
	}
}

// If everyone can write to the working directory, a program that belongs to an untrusted user is refused.
func TestProgramsOfStrangers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of another user")
	}
	for name, tt := range map[string]struct {
		working os.FileMode // mode of the working directory
		user    uint32      // the programs' user
		link    bool
		want    string
	}{
		"open":               {0o1777, 0, false, "check: ./prog belongs to user 65534"},
		"open, link":         {0o1777, 0, true, "check: ./prog belongs to user 65534"},
		"open, trusted user": {0o1777, nobody, false, ""},
		"not writable":       {0o755, 0, false, ""},
		"not writable, link": {0o755, 0, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFetcher(t)
			f.User = &User{Credential: syscall.Credential{Uid: tt.user}}
			must(t, os.Chmod(f.Dir, tt.working|os.FileMode(tt.working&0o1000)<<11))
			prog := filepath.Join(f.Dir, "prog")
			if tt.link {
				elsewhere := filepath.Join(t.TempDir(), "elsewhere")
				must(t, os.Symlink(elsewhere, prog))
				must(t, os.Lchown(prog, nobody, -1))
				write(t, elsewhere+"/run.sh", []byte(goodScript))
			} else {
				write(t, prog+"/run.sh", []byte(goodScript))
				must(t, os.Chown(prog, nobody, -1))
			}
			_, ok, err := f.Ready("prog", "rsync:/x/run.sh")
			if tt.want == "" {
				expect.True(t, ok, ok, err)
				expect.NoError(t, err)
			}
			if tt.want != "" {
				checkFailed(t, err, tt.want)
			}
		})
	}
}

// A fetch into an untrusted user's directory fails, because that user could exchange the files.
func TestFetchIntoDirectoryOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of another user")
	}
	f := newFetcher(t)
	write(t, f.Dir+"/prog/notes", nil)
	must(t, os.Chown(f.Dir+"/prog", nobody, -1))
	src := serve(t, pack(t, "tar", runItem)) + "/x.tar"
	fetchFails(t, f, src, "install: ./prog belongs to user 65534")
	f.User = &User{Credential: syscall.Credential{Uid: nobody}}
	fetchWorks(t, f, src)
}

// If a program has replaced its directory by a link, a fetch writes no file through the link.
func TestInstallStaysInside(t *testing.T) {
	f := newFetcher(t)
	outside := t.TempDir()
	must(t, os.Mkdir(f.Dir+"/prog", 0o755))
	must(t, os.Symlink(outside, f.Dir+"/prog/data"))
	j := expect.Result(f.job("prog", source(t, runItem))).Value(t)
	must(t, os.MkdirAll(j.staged(stagedTree)+"/data", 0o755))
	write(t, j.staged(stagedTree)+"/data/a", []byte("x"))
	into := expect.Result(openProgram(j.Dir, "prog")).Value(t)
	defer into.Close()
	expect.Fails(t, j.move(into, stagedTree+"/data/a", "data/a"), "", "no error")
	expect.Result(os.Lstat(outside+"/a")).Fails(t, "", "a file was written through a link")
}
