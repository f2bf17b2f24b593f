//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package localpass

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// useTempDirs makes the package use temporary directories during the test, and returns these directories.
func useTempDirs(t *testing.T) (config, temporary string) {
	t.Helper()
	config, temporary = t.TempDir(), t.TempDir()
	t.Setenv("HOME", config)
	t.Setenv("XDG_CONFIG_HOME", config)
	t.Setenv("TMPDIR", temporary)
	return filepath.Join(config, "tdf"), temporary
}

func create(t *testing.T, host string, port int) *File {
	t.Helper()
	return expect.Result(Create(host, port)).Value(t)
}

func TestFind(t *testing.T) {
	dir, _ := useTempDirs(t)
	f := create(t, "127.0.0.1", 6379)
	other := create(t, "127.0.0.1", 6380)
	expect.Compare(t, len(f.Secret), ">=", 26)
	expect.NotEqual(t, f.Secret, other.Secret)
	expect.Equal(t, filepath.Dir(f.Path), dir)
	for _, path := range []string{f.Path, dir} {
		expect.Equal(t, expect.Result(os.Stat(path)).Value(t).Mode().Perm()&0o077, 0, path)
	}
	for host, want := range map[string]string{"127.0.0.1": f.Secret, "localhost": f.Secret, "127.0.0.2": "", "::1": "", "redis.example": "", "": ""} {
		expect.Equal(t, Find(host, 6379), want, host, "found")
	}
	expect.Result(Create("localhost", 6379)).FailsWith(t, ErrHeld, "a second file for the address")
	token := expect.Result(KeepToken("127.0.0.1:7379", "tdf_a_B")).Value(t)
	expect.Equal(t, strings.Join(Running(), " "), "127.0.0.1:6379 127.0.0.1:6380")
	expect.NoError(t, errors.Join(f.Close(), token.Close()))
	expect.Equal(t, strings.Join(Running(), " "), "127.0.0.1:6380")
	expect.NoError(t, other.Close())
	expect.Equal(t, Find("127.0.0.1", 6379), "", "found … after Close")
	expect.Len(t, expect.Result(os.ReadDir(dir)).Value(t), 0, "files left")
}

// Find ignores the file of a killed process. Create replaces this file.
func TestStale(t *testing.T) {
	useTempDirs(t)
	f := create(t, "127.0.0.1", 6379)
	f.file.Close() // the kernel also closes the file when a process is killed
	expect.Equal(t, Find("127.0.0.1", 6379), "", "found")
	again := create(t, "127.0.0.1", 6379)
	defer again.Close()
	got := Find("127.0.0.1", 6379)
	expect.Equal(t, got, again.Secret)
	expect.NotEqual(t, got, f.Secret)
}

// A new file replaces those that killed processes of this machine have left, whatever their addresses.
func TestLeftFilesAreRemoved(t *testing.T) {
	dir, _ := useTempDirs(t)
	killed := []*File{create(t, "127.0.0.1", 6379), expect.Result(KeepToken("127.0.0.1:7379", "x")).Value(t), expect.Result(KeepToken("[::1]:1", "x")).Value(t)}
	running := expect.Result(KeepToken("127.0.0.1:7380", "y")).Value(t)
	var kept []string
	for _, name := range []string{"api-" + hostName() + "-2-127.0.0.1:7379", "api-other-127.0.0.1:7379", "redis-0123456789abcdef-127.0.0.1:6379", "notes"} {
		kept = append(kept, filepath.Join(dir, name)) // of other machines, or of the user
		expect.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	link := filepath.Join(dir, nameOf("127.0.0.1", 1))
	expect.NoError(t, os.Symlink("notes", link))
	for _, f := range killed {
		f.file.Close()
	}
	again := create(t, "127.0.0.1", 6380)
	for _, path := range append(kept, link, running.Path, again.Path) {
		expect.Result(os.Lstat(path)).OK(t, path)
	}
	for _, f := range killed {
		expect.Result(os.Lstat(f.Path)).FailsWith(t, os.ErrNotExist, f.Path)
	}
	expect.NoError(t, errors.Join(running.Close(), again.Close()))
}

// Find ignores files that other users could read or make. Find and Create do not follow links.
func TestUntrusted(t *testing.T) {
	dir, temporary := useTempDirs(t)
	f := create(t, "127.0.0.1", 6379)
	defer f.Close()
	for _, c := range []struct {
		path string
		mode os.FileMode
	}{{f.Path, 0o644}, {dir, 0o777}} {
		info := expect.Result(os.Stat(c.path)).Value(t)
		expect.NoError(t, os.Chmod(c.path, c.mode))
		expect.Equal(t, Find("127.0.0.1", 6379), "", c.path, "with mode", c.mode, "found")
		expect.NoError(t, os.Chmod(c.path, info.Mode()))
	}
	expect.Equal(t, Find("127.0.0.1", 6379), f.Secret, "found nothing with the right modes")
	expect.NoError(t, os.Symlink(f.Path, strings.Replace(f.Path, "6379", "6380", 1)))
	expect.Equal(t, Find("127.0.0.1", 6380), "", "through a link: found")
	expect.Result(Create("127.0.0.1", 6380)).Fails(t, "", "Create follows a link")
	expect.NoError(t, os.Chmod(dir, 0o777))
	elsewhere := create(t, "127.0.0.1", 6381)
	defer elsewhere.Close()
	expect.True(t, strings.HasPrefix(elsewhere.Path, temporary), elsewhere.Path, Find("127.0.0.1", 6381))
	expect.Equal(t, Find("127.0.0.1", 6381), elsewhere.Secret)
}

// If no directory is usable, the error names the directories.
func TestNoDirectory(t *testing.T) {
	dir, temporary := useTempDirs(t)
	expect.NoError(t, os.WriteFile(dir, nil, 0o600))
	t.Setenv("TMPDIR", filepath.Join(dir, "below a file"))
	_, err := Create("127.0.0.1", 6379)
	expect.Fails(t, err, dir)
	expect.NotContains(t, err.Error(), temporary)
}

// The file of a token has a header for curl, is private, and goes with Close. It is no password of a Redis.
func TestKeepToken(t *testing.T) {
	dir, _ := useTempDirs(t)
	f := expect.Result(KeepToken("127.0.0.1:6379", "tdf_a_B")).Value(t)
	expect.Equal(t, string(expect.Result(os.ReadFile(f.Path)).Value(t)), "Authorization: Bearer tdf_a_B\n", "the file")
	expect.Equal(t, filepath.Dir(f.Path), dir)
	expect.True(t, strings.HasSuffix(f.Path, "-127.0.0.1:6379"), f.Path)
	expect.Equal(t, expect.Result(os.Stat(f.Path)).Value(t).Mode().Perm(), os.FileMode(0o600), f.Path)
	expect.Equal(t, Find("127.0.0.1", 6379), "", "the password")
	expect.Result(KeepToken("127.0.0.1:6379", "x")).FailsWith(t, ErrHeld, "a second file for the address")
	expect.NoError(t, f.Close())
	expect.Len(t, expect.Result(os.ReadDir(dir)).Value(t), 0, "files left")
}
