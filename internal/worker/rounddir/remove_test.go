package rounddir

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf/internal/expect"
)

func gone(t testing.TB, path string) {
	t.Helper()
	_, err := os.Lstat(path)
	expect.True(t, os.IsNotExist(err), path, "is still there", err)
}

func TestRemoveAll(t *testing.T) {
	outside := t.TempDir()
	must(t, os.WriteFile(outside+"/kept", nil, 0o600))
	for name, leave := range map[string]func(path string) error{
		"nothing":      func(string) error { return nil },
		"no parent":    func(path string) error { return os.Remove(filepath.Dir(path)) },
		"file":         func(path string) error { return os.WriteFile(path, nil, 0) },
		"link":         func(path string) error { return os.Symlink(outside, path) },
		"directory":    func(path string) error { return os.Mkdir(path, 0o700) },
		"pipe in it":   func(path string) error { return leaveIn(path, func(in string) error { return unix.Mkfifo(in, 0o600) }) },
		"socket in it": func(path string) error { return leaveIn(path, socket) },
		"link in it": func(path string) error {
			return leaveIn(path, func(in string) error { return os.Symlink(outside, in) })
		},
		"link to parent": func(path string) error { return leaveIn(path, func(in string) error { return os.Symlink("..", in) }) },
		"odd names": func(path string) error {
			return leaveIn(path, func(in string) error { return os.MkdirAll(in+"/\n/-rf/\xff", 0o700) })
		},
		"names like ours": makeNumbered,
		"many":            many,
		"deep":            func(path string) error { return makeDeep(path, 1000) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "parent", "1-0")
			must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			must(t, leave(path))
			must(t, RemoveAll(path))
			gone(t, path)
		})
	}
	expect.Result(os.Stat(outside + "/kept")).OK(t)
}

func leaveIn(path string, leave func(in string) error) error {
	if err := os.MkdirAll(path+"/a/b", 0o700); err != nil {
		return err
	}
	for _, in := range []string{"/x", "/a/x", "/a/b/x"} {
		if err := leave(path + in); err != nil {
			return err
		}
	}
	return nil
}

// makeNumbered makes entries with the same names that RemoveAll gives to directories that it moves up.
func makeNumbered(path string) error {
	for i := range 4 {
		if err := os.MkdirAll(fmt.Sprintf("%s/%d/%d/x", path, i, i+1), 0o700); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(path+"/y/5/z", 0o700); err != nil {
		return err
	}
	return os.WriteFile(path+"/5", nil, 0o600)
}

func many(path string) error {
	for i := range 1500 {
		dir := filepath.Join(path, strconv.Itoa(i%7), strconv.Itoa(i%11))
		if i < 77 {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// makeDeep makes a path that is longer than the kernel allows.
func makeDeep(path string, levels int) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	at, err := openDir(unix.AT_FDCWD, path, 0)
	for range levels {
		if err == nil {
			err = unix.Mkdirat(at.fd(), "deep", 0o700)
		}
		if err != nil {
			return err
		}
		var next *dir
		next, err = openDir(at.fd(), "deep", 0)
		at.Close()
		at = next
	}
	at.Close()
	return err
}

func TestRemoveAllTakesFewDescriptors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	must(t, makeDeep(path, 300))
	var before, limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	limit = before
	limit.Cur = 50
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	err := RemoveAll(path)
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before))
	must(t, err)
	gone(t, path)
}

// RemoveUntil stops when its function returns true. Remove then removes the rest.
func TestRemoveUntil(t *testing.T) {
	for name, c := range map[string]struct {
		leave func(path string) error
		whole bool
	}{
		"untouched": {func(string) error { return nil }, true},
		"few":       {func(path string) error { return leaveIn(path, func(in string) error { return os.Mkdir(in, 0) }) }, true},
		"many":      {many, false},
		"deep":      {func(path string) error { return makeDeep(path+"/deep", 300) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "1")
			d, err := Create(path, Before{}, nil, limits, nil)
			must(t, err)
			must(t, c.leave(path))
			asked := 0
			err = d.RemoveUntil(func() bool { asked++; return asked >= 100 })
			expect.Equal(t, err == nil, c.whole, asked, "times")
			expect.Compare(t, asked, "<=", 100)
			if !c.whole {
				entries, err := os.ReadDir(path)
				expect.True(t, len(entries) != 0, "nothing is left", err)
				must(t, d.Remove())
			}
			gone(t, path)
		})
	}
}
