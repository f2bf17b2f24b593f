package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf/internal/expect"
)

// openSlot opens the files of a slot for a round.
func openSlot(t testing.TB, s *Slot, round int) *Record {
	t.Helper()
	r, n, err := Open(Files{Slot: s, Round: RoundRef{Program: "p", Task: 7, Round: round}})
	must(t, err)
	expect.Equal(t, n, 0, "the files of a slot have the number")
	return r
}

func texts(t testing.TB, r *Record) (out, failure string) {
	t.Helper()
	read := expect.Result(r.Read(1<<20, "w1", nil)).Value(t)
	return read.Output, read.Error
}

func inode(t testing.TB, f *os.File) os.FileInfo {
	t.Helper()
	info := expect.Result(f.Stat()).Value(t)
	return info
}

// Rounds use the same two files, one round after the other. Each round begins with empty files.
func TestSlotReusesItsFiles(t *testing.T) {
	s := NewSlot(filepath.Join(t.TempDir(), "rounds"), 1, nil)
	var first os.FileInfo
	for round := range 3 {
		r := openSlot(t, s, round)
		if out, failure := texts(t, r); out+failure != "" {
			t.Errorf("round %d begins with %q, %q", round, out, failure)
		}
		write(t, r.Stdout, fmt.Sprint("out", round))
		write(t, r.Stderr, fmt.Sprint("err", round))
		if out, failure := texts(t, r); out != fmt.Sprint("out", round) || failure != fmt.Sprint("err", round) {
			t.Errorf("got %q, %q", out, failure)
		}
		if first == nil {
			first = inode(t, r.Stdout)
		} else if !os.SameFile(first, inode(t, r.Stdout)) {
			t.Error("the round got another file than the first round")
		}
		r.Close()
		tail, changed := r.Tail(nil)
		expect.Equal(t, tail.Text, "")
		expect.True(t, !changed, "the tail has changed after Close")
		r.Release()
	}
	s.Close()
	expect.Len(t, expect.Result(os.ReadDir(s.path)).Value(t), 0, "left")
}

// hostile are actions of a program on its stdout. They must not change what a later round reads.
var hostile = map[string]func(t *testing.T, r *Record, path string) (after func()){
	"keeps it open": func(t *testing.T, r *Record, path string) func() {
		f := expect.Result(os.OpenFile(path, os.O_WRONLY, 0)).Value(t)
		return func() { write(t, f, "late"); f.Close() }
	},
	"opens it for reading": func(t *testing.T, r *Record, path string) func() {
		f := expect.Result(os.Open(path)).Value(t)
		return func() { f.Close() }
	},
	"leaves a process": func(t *testing.T, r *Record, path string) func() {
		cmd := exec.Command("sh", "-c", "read line; printf late")
		in := expect.Result(cmd.StdinPipe()).Value(t)
		cmd.Stdout = r.Stdout
		must(t, cmd.Start())
		return func() {
			in.Close()
			must(t, cmd.Wait())
		}
	},
	"truncates it to a size": func(t *testing.T, r *Record, path string) func() {
		must(t, r.Stdout.Truncate(1<<20))
		return func() {}
	},
	"seeks": func(t *testing.T, r *Record, path string) func() {
		expect.Result(r.Stdout.Seek(100, 0)).OK(t)
		return func() {}
	},
	"changes its mode": func(t *testing.T, r *Record, path string) func() {
		must(t, r.Stdout.Chmod(0o666))
		return func() {}
	},
	"gives it a second name": func(t *testing.T, r *Record, path string) func() {
		must(t, os.Link(path, path+".mine"))
		return func() { must(t, os.WriteFile(path+".mine", []byte("late"), 0o644)) }
	},
	"removes it": func(t *testing.T, r *Record, path string) func() {
		must(t, os.Remove(path))
		return func() {}
	},
	"replaces it": func(t *testing.T, r *Record, path string) func() {
		must(t, os.WriteFile(path+".mine", nil, 0o644))
		must(t, os.Rename(path+".mine", path))
		return func() {}
	},
	"replaces it by a pipe": func(t *testing.T, r *Record, path string) func() {
		must(t, os.Remove(path))
		must(t, unix.Mkfifo(path, 0o644))
		return func() {}
	},
	"replaces it by a link": func(t *testing.T, r *Record, path string) func() {
		must(t, os.WriteFile(path+".target", nil, 0o644))
		must(t, os.Remove(path))
		must(t, os.Symlink(path+".target", path))
		return func() {}
	},
	"removes the directory": func(t *testing.T, r *Record, path string) func() {
		must(t, os.RemoveAll(filepath.Dir(path)))
		return func() {}
	},
}

func TestSlotAfterAHostileProgram(t *testing.T) {
	for name, act := range hostile {
		t.Run(name, func(t *testing.T) {
			s := NewSlot(filepath.Join(t.TempDir(), "rounds"), 1, nil)
			defer s.Close()
			r := openSlot(t, s, 0)
			write(t, r.Stdout, "first")
			after := act(t, r, filepath.Join(s.path, "slot-1.out"))
			r.Close()
			r.Release()
			next := openSlot(t, s, 1)
			after()
			write(t, next.Stdout, "next")
			out, failure := texts(t, next)
			expect.Equal(t, out, "next", failure)
			expect.Equal(t, failure, "")
			expect.Equal(t, inode(t, next.Stdout).Mode(), 0o644, "the file of the next round has the mode")
			next.Close()
			next.Release()
		})
	}
}

// A round with secrets gets files that only the worker's user can read, also after a round without secrets.
func TestSlotOfAPrivateRound(t *testing.T) {
	s := NewSlot(t.TempDir(), 1, nil)
	defer s.Close()
	for _, private := range []bool{false, true, true, false} {
		r, _, err := Open(Files{Slot: s, Private: private})
		must(t, err)
		expect.Equal(t, inode(t, r.Stdout).Mode(), fs.FileMode(mode(private)), "private", private, "mode")
		r.Close()
		r.Release()
	}
}

// A file that is kept goes to its place, and the next round gets a new one.
func TestSlotKeepsAFile(t *testing.T) {
	places := map[string]string{"on the same file system": t.TempDir()}
	if other, err := os.MkdirTemp("/dev/shm", "tdf"); err == nil {
		t.Cleanup(func() { os.RemoveAll(other) })
		places["on another file system"] = other
	}
	for name, to := range places {
		t.Run(name, func(t *testing.T) {
			dir := expect.Result(os.Open(to)).Value(t)
			defer dir.Close()
			must(t, os.WriteFile(filepath.Join(to, "taken"), nil, 0o644))
			s := NewSlot(t.TempDir(), 1, nil)
			defer s.Close()
			r := openSlot(t, s, 0)
			write(t, r.Stdout, "0123456789")
			got := r.Unkept(9)
			expect.MustLen(t, got, 1)
			expect.Equal(t, got[0], 0)
			expect.FailsWith(t, r.Keep(0, dir, "taken"), fs.ErrExist)
			must(t, r.Keep(0, dir, "kept"))
			read := expect.Result(r.Read(4, "w1", nil)).Value(t)
			expect.Equal(t, read.Output, "01\n[6 bytes are left out here; the whole output is on worker w1 in "+to+"/kept]\n89")
			r.Close()
			r.Release()
			next := openSlot(t, s, 1)
			write(t, next.Stdout, "next")
			must(t, next.Keep(0, dir, "next"))
			next.Close()
			next.Release()
			for file, want := range map[string]string{"kept": "0123456789", "next": "next"} {
				expect.Equal(t, string(expect.Result(os.ReadFile(filepath.Join(to, file))).Value(t)), want, file)
			}
		})
	}
}

// After a worker was killed, its files say whose output they contain.
func TestSalvage(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	for number, text := range map[int]string{1: "", 2: "two"} {
		r := openSlot(t, NewSlot(dir, number, nil), number)
		write(t, r.Stderr, text)
		r.Close()
	}
	place := expect.Result(os.Open(to)).Value(t)
	defer place.Close()
	var found []string
	must(t, Salvage(dir, func(l *Leftover) {
		found = append(found, fmt.Sprint(l.RoundRef, l.Streams()))
		for _, stream := range l.Streams() {
			must(t, l.Keep(stream, place, "kept"))
		}
	}, nil))
	expect.MustLen(t, found, 1)
	expect.Equal(t, found[0], "{p 7 2 0} [1]")
	expect.Equal(t, string(expect.Result(os.ReadFile(filepath.Join(to, "kept"))).Value(t)), "two")
	must(t, Salvage(filepath.Join(dir, "missing"), nil, nil))
}

// A program may have written the labels. If a label names a link, or a file outside of the directory, Salvage does not
// use this file.
func TestSalvageOfHostileLabels(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte("secret"), 0o600))
	must(t, os.Symlink(secret, filepath.Join(dir, "link")))
	must(t, os.Link(secret, filepath.Join(dir, "hard")))
	must(t, os.Symlink(secret, filepath.Join(dir, "slot-9.round")))
	must(t, os.WriteFile(filepath.Join(dir, "slot-8.round"), []byte("{"), 0o600))
	for i, name := range []string{"../" + filepath.Base(filepath.Dir(secret)) + "/secret", secret, "link", "hard", "."} {
		line := expect.Result(json.Marshal(label{RoundRef{"p", 1, 0, 0}, [2]string{name, name}})).Value(t)
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("slot-%d.round", i)), append(line, '\n'), 0o600))
	}
	leftOut := 0
	must(t, Salvage(dir, func(l *Leftover) { t.Errorf("found %v", l) }, func(string, error) { leftOut++ }))
	expect.True(t, leftOut != 0, "no file is reported as left out")
}

// A program may do anything to the label of its slot. The next round gets a label all the same.
func TestLabelAfterAHostileProgram(t *testing.T) {
	for name, act := range map[string]func(label string) error{
		"none":             func(string) error { return nil },
		"removes it":       os.Remove,
		"renames it":       func(label string) error { return os.Rename(label, label+".mine") },
		"links it":         func(label string) error { return os.Link(label, label+".mine") },
		"changes its mode": func(label string) error { return os.Chmod(label, 0) },
		"replaces it": func(label string) error {
			return errors.Join(os.WriteFile(label+".mine", nil, 0o600), os.Rename(label+".mine", label))
		},
		"replaces it by a link": func(label string) error {
			return errors.Join(os.Remove(label), os.Symlink(label+".mine", label))
		},
		"replaces it by a directory": func(label string) error { return errors.Join(os.Remove(label), os.Mkdir(label, 0o755)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := NewSlot(t.TempDir(), 1, nil)
			r := openSlot(t, s, 0)
			must(t, act(filepath.Join(s.path, "slot-1.round")))
			r.Close()
			r.Release()
			next, _, err := Open(Files{Slot: s, Round: RoundRef{Program: "p", Task: 7, Round: 1}})
			if name == "replaces it by a directory" {
				expect.Fails(t, err, "", "the round began without a label")
				return
			}
			must(t, err)
			write(t, next.Stdout, "next")
			next.Close()
			var found []string
			must(t, Salvage(s.path, func(l *Leftover) { found = append(found, fmt.Sprint(l.Round)) }, func(file string, why error) {
				t.Errorf("left out: %s: %v", file, why)
			}))
			expect.MustLen(t, found, 1)
			expect.Equal(t, found[0], "1")
		})
	}
}

// Salvage says which files it leaves out, and why.
func TestSalvageSaysWhatItLeavesOut(t *testing.T) {
	for name, c := range map[string]struct {
		act  func(dir string) error
		want string
	}{
		"nothing":                   {func(string) error { return nil }, ""},
		"no file":                   {func(dir string) error { return os.Remove(dir + "/slot-1.out") }, ""},
		"a file with another name":  {func(dir string) error { return os.Link(dir+"/slot-1.out", dir+"/mine") }, "slot-1.out: the file has 2 names"},
		"a label with another name": {func(dir string) error { return os.Link(dir+"/slot-1.round", dir+"/mine") }, "slot-1.round: the file has 2 names"},
		"no regular file": {func(dir string) error {
			return errors.Join(os.Remove(dir+"/slot-1.out"), os.Mkdir(dir+"/slot-1.out", 0o755))
		}, "slot-1.out: the file is not a regular file"},
		"a link": {func(dir string) error {
			return errors.Join(os.Remove(dir+"/slot-1.out"), os.Symlink("slot-1.err", dir+"/slot-1.out"))
		}, "slot-1.out: too many levels of symbolic links"},
		"a file without rights": {func(dir string) error { return os.Chmod(dir+"/slot-1.out", 0) }, "slot-1.out: permission denied"},
		"no label":              {func(dir string) error { return os.WriteFile(dir+"/slot-1.round", []byte("{"), 0o600) }, "slot-1.round: the file is not as a worker writes it"},
		"an empty label":        {func(dir string) error { return os.Truncate(dir+"/slot-1.round", 0) }, "slot-1.round: the file is not as a worker writes it"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "a file without rights" && os.Geteuid() == 0 {
				t.Skip("root can read every file")
			}
			dir := t.TempDir()
			r := openSlot(t, NewSlot(dir, 1, nil), 0)
			write(t, r.Stdout, "out")
			r.Close()
			must(t, c.act(dir))
			got := ""
			must(t, Salvage(dir, func(*Leftover) {}, func(file string, why error) { got += filepath.Base(file) + ": " + why.Error() }))
			expect.Equal(t, got, c.want, "left out")
		})
	}
}
