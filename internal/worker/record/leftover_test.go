package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// After a worker was killed, the names of its files say whose output they contain.
func TestSalvage(t *testing.T) {
	s := &Spool{Dir: t.TempDir()}
	for number, text := range []string{"", "two"} {
		r := expect.Result(s.Open(RoundRef{Program: "a-b.out", Task: 7, Round: number}, false)).Value(t)
		prints(t, r.Stderr, text)
		r.Stdout.Close()
		r.Stderr.Close()
	}
	for _, name := range []string{"lock", "3", "7-x-p.out", "x-1-p.out", "7-1-p.round"} {
		must(t, os.WriteFile(filepath.Join(s.Dir, name), []byte("x"), 0o644))
	}
	to := directory(t, t.TempDir())
	var found []string
	must(t, Salvage(s.Dir, func(l *Leftover) {
		found = append(found, fmt.Sprint(l.RoundRef, l.Streams()))
		for _, stream := range l.Streams() {
			must(t, l.Keep(stream, to, "kept"))
		}
	}, func(file string, why error) { t.Error(file, why) }))
	expect.MustLen(t, found, 1)
	expect.Equal(t, found[0], "{a-b.out 7 1} [1]")
	expect.Equal(t, string(expect.Result(os.ReadFile(filepath.Join(to.Name(), "kept"))).Value(t)), "two")
	must(t, Salvage(filepath.Join(s.Dir, "missing"), nil, nil))
}

// Salvage says which files it leaves out, and why.
func TestSalvageSaysWhatItLeavesOut(t *testing.T) {
	for name, c := range map[string]struct {
		act  func(path string) error
		want string
	}{
		"nothing":                  {func(string) error { return nil }, ""},
		"no file":                  {os.Remove, ""},
		"a file with another name": {func(path string) error { return os.Link(path, path+".mine") }, "the file has 2 names"},
		"no regular file":          {func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o755)) }, "the file is not a regular file"},
		"a link":                   {func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/etc/passwd", path)) }, "too many levels of symbolic links"},
		"a file without rights":    {func(path string) error { return os.Chmod(path, 0) }, "permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "a file without rights" && os.Geteuid() == 0 {
				t.Skip("root can read every file")
			}
			s := &Spool{Dir: t.TempDir()}
			r := expect.Result(s.Open(round, false)).Value(t)
			prints(t, r.Stdout, "out")
			r.Stdout.Close()
			r.Stderr.Close()
			path := filepath.Join(s.Dir, "7-0-p.out")
			must(t, c.act(path))
			found, got := 0, ""
			must(t, Salvage(s.Dir, func(*Leftover) { found++ }, func(file string, why error) {
				expect.Equal(t, file, path)
				got = why.Error()
			}))
			expect.Contains(t, got, c.want)
			expect.Equal(t, got == "", c.want == "", got)
			expect.Equal(t, found > 0, name == "nothing")
		})
	}
}
