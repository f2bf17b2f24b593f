package record

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

func inMemory(t *testing.T) (*Record, string) {
	t.Helper()
	dir := t.TempDir()
	s := &Spool{Dir: filepath.Join(dir, "rounds")}
	return s.InMemory(round, false), dir
}

func countFiles(t *testing.T, dir string) int {
	t.Helper()
	names, err := os.ReadDir(dir)
	if err != nil {
		expect.MustTrue(t, os.IsNotExist(err), err)
	}
	return len(names)
}

// A stream is the same in memory and in a file, at each size around the bound.
func TestStreamInMemory(t *testing.T) {
	for _, size := range []int{0, 1, InMemory - 1, InMemory, InMemory + 1, 3 * InMemory} {
		for _, chunk := range []int{1000, InMemory, 4 * InMemory} {
			t.Run(fmt.Sprint(size, " by ", chunk), func(t *testing.T) {
				r, dir := inMemory(t)
				stdout, stderr := r.Writers()
				want := strings.Repeat("0123456789\n", size/11+1)[:size]
				for rest := want; rest != ""; {
					n := min(chunk, len(rest))
					must(t, writeTo(stdout, rest[:n]))
					rest = rest[n:]
				}
				must(t, writeTo(stderr, "e"))
				tail, changed := r.Tail(nil)
				expect.True(t, changed, "the tail is", tail, changed)
				expect.True(t, strings.HasSuffix(tail.Text, want[max(0, size-50):]+"e"), "the tail is", tail, changed)
				expect.Equal(t, tail.TailEnd, task.TailEnd{All: int64(size + 1), Stdout: int64(size), Stderr: 1})
				texts := expect.Result(r.Read(1<<20, "w", nil)).Value(t)
				expect.Equal(t, texts.Output, want, size)
				expect.Equal(t, texts.OutputBytes, int64(size), size)
				expect.Equal(t, texts.Error, "e", size)
				expect.Equal(t, countFiles(t, filepath.Join(dir, "rounds")) > 0, size > InMemory, "there are files")
				r.Close()
				expect.FailsWith(t, writeTo(stdout, "late"), os.ErrClosed, "writing after the end")
				keptAs(t, r, dir, want)
			})
		}
	}
}

// keptAs keeps stdout as a file, and compares the content of this file with want.
func keptAs(t *testing.T, r *Record, dir, want string) {
	t.Helper()
	expect.Equal(t, r.Unkept(0, 0), want != "")
	to := expect.Result(os.Open(dir)).Value(t)
	defer to.Close()
	must(t, os.WriteFile(filepath.Join(dir, "taken"), nil, 0o600))
	expect.FailsWith(t, r.Keep(0, to, "taken"), os.ErrExist, "a taken name")
	must(t, r.Keep(0, to, "kept"))
	expect.Equal(t, string(expect.Result(os.ReadFile(filepath.Join(dir, "kept"))).Value(t)), want)
	r.Release()
}

// If the file cannot be made, the round gets the error, and the stream keeps its text.
func TestStreamWithoutAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(path, nil, 0o600))
	r := (&Spool{Dir: filepath.Join(path, "rounds")}).InMemory(round, false)
	stdout, _ := r.Writers()
	must(t, writeTo(stdout, "kept"))
	expect.Fails(t, writeTo(stdout, strings.Repeat("x", InMemory)), "", "no error")
	expect.Equal(t, expect.Result(r.Read(100, "w", nil)).Value(t).Output, "kept", "read")
	r.Close()
	r.Release()
}

func writeTo(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}
