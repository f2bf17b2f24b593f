//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package localpass

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// at has the files of this test below a directory of its own, and returns where they are.
func at(t *testing.T) (config, temporary string) {
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
	dir, _ := at(t)
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
		t.Errorf("a second one: %v", err)
	}
	if err := errors.Join(f.Close(), other.Close()); err != nil {
		t.Error(err)
	}
	if got := Find("127.0.0.1", 6379); got != "" {
		t.Errorf("found %q afterwards", got)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

// What a process left that was killed counts for nothing, and is in nobody's way.
func TestStale(t *testing.T) {
	at(t)
	f := create(t, "127.0.0.1", 6379)
	f.file.Close() // as the kernel does
	if got := Find("127.0.0.1", 6379); got != "" {
		t.Errorf("found %q", got)
	}
	again := create(t, "127.0.0.1", 6379)
	defer again.Close()
	if got := Find("127.0.0.1", 6379); got != again.Password || got == f.Password {
		t.Errorf("found %q, want %q", got, again.Password)
	}
}

// Files that others could read or have made are not used, and links are not followed.
func TestUntrusted(t *testing.T) {
	dir, temporary := at(t)
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
		t.Error("made one through a link")
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	elsewhere := create(t, "127.0.0.1", 6381)
	defer elsewhere.Close()
	if !strings.HasPrefix(elsewhere.Path, temporary) || Find("127.0.0.1", 6381) != elsewhere.Password {
		t.Errorf("beside a directory of others: %s, found %q", elsewhere.Path, Find("127.0.0.1", 6381))
	}
}

// Where there is no place for a file, the error names what is wrong.
func TestNoPlace(t *testing.T) {
	dir, temporary := at(t)
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", filepath.Join(dir, "below a file"))
	if _, err := Create("127.0.0.1", 6379); err == nil || !strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), temporary) {
		t.Errorf("got %v", err)
	}
}
