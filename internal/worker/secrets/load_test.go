package secrets

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/expect"
)

var must = expect.NoError

func write(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secrets.env")
	must(t, os.WriteFile(path, []byte(text), mode))
	must(t, os.Chmod(path, mode))
	return path
}

func load(t *testing.T, path string) (*Secrets, error) {
	t.Helper()
	f := expect.Result(os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)).Value(t)
	defer f.Close()
	return Read(f)
}

func TestRead(t *testing.T) {
	path := write(t, "\uFEFF# a comment\r\n\r\nTOKEN=hunter22\r\n  PADDED= two words \n\n#X=y\nQUOTED=\"a # b\" $HOME\nEMPTY=\n_a1=x=y=z", 0o600)
	s := expect.Result(load(t, path)).Value(t)
	want := []string{"TOKEN=hunter22", "PADDED= two words ", `QUOTED="a # b" $HOME`, "EMPTY=", "_a1=x=y=z"}
	expect.Equal(t, cmp.Diff(want, s.Env()), "")
}

func TestReadAcceptsAFileThatNobodyMayWrite(t *testing.T) {
	expect.Len(t, expect.Result(load(t, write(t, "A=b\n", 0o400))).Value(t).Env(), 1)
}

func TestReadRefusesLines(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no =":        {"A=b\n\nhunter22\n", "line 3: it has no ="},
		"no name":     {"=hunter22\n", "line 1: invalid name before the ="},
		"digit first": {"1A=hunter22\n", "line 1: invalid name"},
		"blank":       {"A =hunter22\n", "line 1: invalid name"},
		"export":      {"export A=hunter22\n", "line 1: invalid name"},
		"odd letter":  {"hunter22-x=\n", "line 1: invalid name"},
		"NUL":         {"A=hunter22\x00\n", "line 1: it contains a NUL"},
		"ours":        {"TDF_TASK_ID=hunter22", "line 1: TDF_TASK_ID: names that begin with TDF_"},
		"twice":       {"A=hunter22\nA=hunter22\n", "line 2: A is set twice"},
		"UTF-16":      {"\xff\xfeA\x00=\x00", "line 1: it contains a NUL"},
		"too large":   {"A=hunter22" + strings.Repeat("x", MaxFile), "more than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, c.text, 0o600)
			refused(t, path, path+": "+c.want)
		})
	}
}

func refused(t *testing.T, path, want string) {
	t.Helper()
	s, err := load(t, path)
	expect.MustEqual(t, s, nil)
	expect.Fails(t, err, want)
	expect.True(t, !strings.Contains(err.Error(), "hunter22"), "the error shows the secret", err)
}

func TestReadRefusesFiles(t *testing.T) {
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o601} {
		path := write(t, "A=hunter22\n", mode)
		refused(t, path, path+fmt.Sprintf(": its mode is %04o", mode))
	}
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o700))
	refused(t, dir, "it is not a regular file")
	fifo := filepath.Join(dir, "fifo")
	must(t, syscall.Mkfifo(fifo, 0o600))
	refused(t, fifo, "it is not a regular file")
}
