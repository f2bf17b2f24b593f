package fetch

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Nobody else can hold a lock, or look into what is being fetched, also where an earlier release left it open.
func TestLocksArePrivate(t *testing.T) {
	for _, open := range []bool{false, true} {
		f := newFetcher(t)
		if open {
			must(t, os.MkdirAll(filepath.Join(f.Dir, locksDir), 0o777))
			must(t, os.MkdirAll(filepath.Join(f.Dir, stagingDir), 0o777))
			must(t, os.WriteFile(filepath.Join(f.Dir, locksDir, "prog"), nil, 0o644))
		}
		fetchWorks(t, f, source(t, runItem))
		for name, want := range map[string]os.FileMode{privateDir: 0o755, locksDir: 0o700, stagingDir: 0o700, locksDir + "/prog": 0o600} {
			if info, err := os.Lstat(filepath.Join(f.Dir, name)); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, want)
			}
		}
		lastUsed(t, f.Dir, 4*week)
		removes(t, f, true)
	}
}

// A link or a pipe in the place of a lock leads nowhere, and holds nobody up.
func TestLocksAreFiles(t *testing.T) {
	f := newFetcher(t)
	outside := filepath.Join(t.TempDir(), "made")
	must(t, os.MkdirAll(filepath.Join(f.Dir, locksDir), 0o700))
	lock := filepath.Join(f.Dir, locksDir, "prog")
	must(t, os.Symlink(outside, lock))
	if _, err := f.Fetch(t.Context(), "prog", source(t, runItem)); err == nil {
		t.Error("no error")
	}
	if _, err := os.Lstat(outside); err == nil {
		t.Error("a file was made where a link leads")
	}
	must(t, os.Remove(lock))
	must(t, unix.Mkfifo(lock, 0o600))
	if _, err := f.Fetch(t.Context(), "prog", source(t, runItem)); err == nil {
		t.Error("no error")
	}
}

// A run.sh that is a link, or has another name somewhere, has its target's mode left alone.
func TestModesElsewhereAreKept(t *testing.T) {
	for name, link := range map[string]func(string, string) error{"symbolic": os.Symlink, "hard": os.Link} {
		t.Run(name, func(t *testing.T) {
			f := newFetcher(t)
			target := write(t, filepath.Join(t.TempDir(), "target"), []byte(goodScript))
			must(t, os.Mkdir(f.Dir+"/prog", 0o755))
			must(t, link(target, f.Dir+"/prog/run.sh"))
			fetchFails(t, f, "rsync:/x/run.sh", "check: ", "make that file executable (chmod +x)")
			if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o644 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			must(t, os.Chmod(target, 0o755)) // by hand
			if _, ok, err := f.Ready("prog", "rsync:/x/run.sh"); !ok || err != nil {
				t.Error(ok, err)
			}
		})
	}
}

// What is no file holds nobody up.
func TestPipesAsRunScript(t *testing.T) {
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
	if err := j.executable(script, 0o600); err == nil { // it was exchanged a moment ago
		t.Error("no error")
	}
}

// Where everybody can write to the working directory, a program counts only if those put it there whom the worker trusts.
func TestProgramsOfStrangers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of another user")
	}
	for name, tt := range map[string]struct {
		working os.FileMode // of the working directory
		user    int         // as whom programs run
		link    bool
		want    string
	}{
		"everybody's":             {0o1777, 0, false, "check: ./prog belongs to user 65534"},
		"everybody's, a link":     {0o1777, 0, true, "check: ./prog belongs to user 65534"},
		"everybody's, their user": {0o1777, nobody, false, ""},
		"ours":                    {0o755, 0, false, ""},
		"ours, a link":            {0o755, 0, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFetcher(t)
			f.OtherUser, f.User = tt.user != 0, tt.user
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
			if tt.want == "" && (!ok || err != nil) {
				t.Error(ok, err)
			}
			if tt.want != "" {
				checkFailed(t, err, tt.want)
			}
		})
	}
}

// Nothing is fetched into a directory that belongs to another user: he could exchange what comes.
func TestNothingIsFetchedIntoStrangersDirectories(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of another user")
	}
	f := newFetcher(t)
	write(t, f.Dir+"/prog/notes", nil)
	must(t, os.Chown(f.Dir+"/prog", nobody, -1))
	src := source(t, runItem)
	fetchFails(t, f, src, "install: ./prog belongs to user 65534")
	f.OtherUser, f.User = true, nobody
	fetchWorks(t, f, src)
}

// A program that exchanges a directory of its own for a link does not have files put elsewhere.
func TestInstallStaysInside(t *testing.T) {
	f := newFetcher(t)
	outside := t.TempDir()
	must(t, os.Mkdir(f.Dir+"/prog", 0o755))
	must(t, os.Symlink(outside, f.Dir+"/prog/data"))
	j, err := f.job("prog", source(t, runItem))
	must(t, err)
	must(t, os.MkdirAll(j.staged(stagedTree)+"/data", 0o755))
	write(t, j.staged(stagedTree)+"/data/a", []byte("x"))
	into, err := openProgram(j.Dir, "prog")
	must(t, err)
	defer into.Close()
	if err := j.move(into, stagedTree+"/data/a", "data/a"); err == nil {
		t.Error("no error")
	}
	if _, err := os.Lstat(outside + "/a"); err == nil {
		t.Error("a file was put where a link leads")
	}
}
