//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package localpass

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	f, err := Create(host, port)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFind(t *testing.T) {
	dir, _ := useTempDirs(t)
	f := create(t, "127.0.0.1", 6379)
	other := create(t, "127.0.0.1", 6380)
	if len(f.Password) < 26 || f.Password == other.Password || filepath.Dir(f.Path) != dir {
		t.Errorf("passwords %q and %q, in %s", f.Password, other.Password, f.Path)
	}
	for _, path := range []string{f.Path, dir} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	for host, want := range map[string]string{"127.0.0.1": f.Password, "localhost": f.Password, "127.0.0.2": "", "::1": "", "redis.example": "", "": ""} {
		if got := Find(host, 6379); got != want {
			t.Errorf("%s: found %q, want %q", host, got, want)
		}
	}
	if _, err := Create("localhost", 6379); !errors.Is(err, ErrHeld) {
		t.Errorf("a second file for the address: %v", err)
	}
	if err := errors.Join(f.Close(), other.Close()); err != nil {
		t.Error(err)
	}
	if got := Find("127.0.0.1", 6379); got != "" {
		t.Errorf("found %q after Close", got)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files left: %v, %v", left, err)
	}
}

// Find ignores the file of a killed process. Create replaces this file.
func TestStale(t *testing.T) {
	useTempDirs(t)
	f := create(t, "127.0.0.1", 6379)
	f.file.Close() // the kernel also closes the file when a process is killed
	if got := Find("127.0.0.1", 6379); got != "" {
		t.Errorf("found %q", got)
	}
	again := create(t, "127.0.0.1", 6379)
	defer again.Close()
	if got := Find("127.0.0.1", 6379); got != again.Password || got == f.Password {
		t.Errorf("found %q, want %q", got, again.Password)
	}
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
		info, err := os.Stat(c.path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(c.path, c.mode); err != nil {
			t.Fatal(err)
		}
		if got := Find("127.0.0.1", 6379); got != "" {
			t.Errorf("%s with mode %v: found %q", c.path, c.mode, got)
		}
		if err := os.Chmod(c.path, info.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	if Find("127.0.0.1", 6379) != f.Password {
		t.Error("found nothing with the right modes")
	}
	link := strings.Replace(f.Path, "6379", "6380", 1)
	if err := os.Symlink(f.Path, link); err != nil {
		t.Fatal(err)
	}
	if got := Find("127.0.0.1", 6380); got != "" {
		t.Errorf("through a link: found %q", got)
	}
	if _, err := Create("127.0.0.1", 6380); err == nil {
		t.Error("Create follows a link")
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	elsewhere := create(t, "127.0.0.1", 6381)
	defer elsewhere.Close()
	if !strings.HasPrefix(elsewhere.Path, temporary) || Find("127.0.0.1", 6381) != elsewhere.Password {
		t.Errorf("with a directory that others can write to: %s, found %q", elsewhere.Path, Find("127.0.0.1", 6381))
	}
}

// If no directory is usable, the error names the directories.
func TestNoDirectory(t *testing.T) {
	dir, temporary := useTempDirs(t)
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", filepath.Join(dir, "below a file"))
	if _, err := Create("127.0.0.1", 6379); err == nil || !strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), temporary) {
		t.Errorf("got %v", err)
	}
}
