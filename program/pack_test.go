package program_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/fetch"
	"github.com/tdf-framework/tdf/fetch/archive"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/program"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/programs"
)

var must = expect.NoError

const packedScript = "#!/bin/sh\ncat data/\"$1\"\n"

// plant writes files into a directory. For a name that ends in a slash, it makes a directory. For a text that begins
// with ->, it makes a symbolic link.
func plant(t testing.TB, dir string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		switch target, link := strings.CutPrefix(text, "->"); {
		case strings.HasSuffix(name, "/"):
			must(t, os.MkdirAll(path, 0o755))
		case link:
			must(t, os.Symlink(target, path))
		default:
			must(t, os.WriteFile(path, []byte(text), 0o644))
		}
	}
	return dir
}

// fetched unpacks an archive as a worker does. It returns the unpacked files, without the files that the worker adds.
func fetched(t testing.TB, p program.Packed) (dir string, files map[string]string) {
	t.Helper()
	f := fetch.Fetcher{Dir: t.TempDir(), Compressions: archive.Compressions(), Blob: func(context.Context, string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(p.Archive)), nil
	}}
	fetched := expect.Result(f.Fetch(t.Context(), p.Name, p.Source)).Value(t)
	return fetched.Dir, listing(t, fetched.Dir)
}

func listing(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		must(t, err)
		name := expect.Result(filepath.Rel(dir, path)).Value(t)
		if name == "." || strings.HasPrefix(name, ".tdf-") {
			return nil
		}
		info := expect.Result(d.Info()).Value(t)
		files[name] = info.Mode().String() + " "
		switch {
		case info.Mode().IsRegular():
			text := expect.Result(os.ReadFile(path)).Value(t)
			files[name] += string(text)
		case info.Mode()&fs.ModeSymlink != 0:
			target := expect.Result(os.Readlink(path)).Value(t)
			files[name] = "->" + target
		}
		return nil
	}))
	return files
}

func TestPackedIsFetchedAndRun(t *testing.T) {
	dir := plant(t, filepath.Join(t.TempDir(), "my program"), map[string]string{
		"run.sh": packedScript, "data/größe": "\x00\xff\n", "data/deep/er/file": strings.Repeat("x", 1<<20),
		"data/link": "->../data/größe", "latest": "->data/deep", "data/" + strings.Repeat("long", 50): "y", "empty/": "",
		"latest2": "->latest/er/../er/file", "tool": "#!/bin/sh\n", "here": "->.",
	})
	must(t, os.Chmod(filepath.Join(dir, "tool"), 0o4711))
	p := expect.Result(program.Pack(dir)).Value(t)
	expect.MustTrue(t, strings.HasPrefix(p.Name, "my-program-"), "name", p.Name, "source", p.Source)
	expect.MustEqual(t, p.Source, "redis:"+p.Source[6:], "name", p.Name)
	expect.Equal(t, p.Name[len("my-program-"):], p.Source[6:14], "name", p.Name, "source", p.Source)
	expect.Equal(t, p.Files, 9, p.Bytes, "bytes")
	expect.Equal(t, p.Bytes, int64(len(packedScript)+3+1<<20+1+len("#!/bin/sh\n")), p.Files)
	at, got := fetched(t, p)
	must(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o755))
	must(t, os.Chmod(filepath.Join(dir, "tool"), 0o755))
	expect.Equal(t, cmp.Diff(listing(t, dir), got), "")
	run := exec.Command("./run.sh", "link")
	run.Dir = at
	expect.Equal(t, string(expect.Result(run.Output()).Value(t)), "\x00\xff\n", "the program printed")
}

// The same content gives the same archive, and different content gives a different archive.
func TestPackIsDeterministic(t *testing.T) {
	files := map[string]string{"run.sh": packedScript, "b/c": "2", "a": "1", "l": "->a"}
	first := plant(t, filepath.Join(t.TempDir(), "p"), files)
	second := plant(t, filepath.Join(t.TempDir(), "p"), files)
	old := time.Unix(1e9, 0)
	must(t, os.Chtimes(filepath.Join(second, "a"), old, old))
	must(t, os.Chmod(filepath.Join(second, "a"), 0o600))
	must(t, os.Chmod(filepath.Join(second, "b"), 0o700))
	must(t, os.Chmod(filepath.Join(second, "run.sh"), 0o711))
	plant(t, second, map[string]string{".git/config": "x", "b/.git": "y", ".tdf-program.json": "{}"})
	a := expect.Result(program.Pack(first)).Value(t)
	b := expect.Result(program.Pack(second + "/")).Value(t)
	expect.Equal(t, cmp.Diff(a, b), "", "two archives")
	for name, change := range map[string]func() error{
		"content": func() error { return os.WriteFile(filepath.Join(second, "a"), []byte("2"), 0o644) },
		"mode":    func() error { return os.Chmod(filepath.Join(second, "a"), 0o755) },
		"name":    func() error { return os.Rename(filepath.Join(second, "a"), filepath.Join(second, "a2")) },
	} {
		must(t, os.Remove(filepath.Join(second, "l")))
		must(t, change())
		must(t, os.Symlink("run.sh", filepath.Join(second, "l")))
		c := expect.Result(program.Pack(second)).Value(t)
		expect.NotEqual(t, c.Source, b.Source, name, "Pack returned the same program")
		expect.NotEqual(t, c.Name, b.Name, name, "Pack returned the same program")
		b = c
	}
}

func TestPackIgnores(t *testing.T) {
	dir := plant(t, t.TempDir(), map[string]string{
		"run.sh": packedScript, "a.o": "", "sub/b.o": "", "sub/keep": "k", "results/1": "", "sub/results/2": "r", "build": "", "x/build/y": "",
		"top": "", "x/top": "t", "x/y/z.log": "", "x/z.log": "l",
		".venv/bin/python": "->/usr/bin/python3", "sub/__pycache__/a.pyc": "", "dot": "",
		".tdfignore": "\ufeff# results of runs\n\n*.o\n/results\nbuild/\r\n/top\nx/*/*.log\n./dot\n",
	})
	p := expect.Result(program.Pack(dir)).Value(t)
	expect.Equal(t, strings.Join(p.LeftOut, " "), ".venv sub/__pycache__")
	_, got := fetched(t, p)
	var names []string
	for name, text := range got {
		if !strings.HasPrefix(text, "d") {
			names = append(names, name)
		}
	}
	want := map[string]bool{"run.sh": true, "sub/keep": true, "sub/results/2": true, "build": true, "x/top": true, "x/z.log": true}
	for _, name := range names {
		expect.True(t, want[name], name, "is packed")
		delete(want, name)
	}
	expect.Len(t, want, 0, "not packed")
}

// A run.sh that is a link inside the directory is packed as the file to which it leads.
func TestPackFollowsRunSh(t *testing.T) {
	dir := plant(t, t.TempDir(), map[string]string{"run.sh": "->lib/main.sh", "lib/main.sh": packedScript})
	_, got := fetched(t, expect.Result(program.Pack(dir)).Value(t))
	expect.Equal(t, got["run.sh"], got["lib/main.sh"][:1]+got["run.sh"][1:])
}

func TestPackRefuses(t *testing.T) {
	script := func(more map[string]string) map[string]string {
		more["run.sh"] = packedScript
		return more
	}
	for _, c := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{"a": ""}, "contains no run.sh; workers run"},
		{map[string]string{"p/run.sh": "x"}, "contains no run.sh; did you mean its subdirectory p?"},
		{map[string]string{"run.sh": ""}, "run.sh is empty"},
		{map[string]string{"run.sh/": ""}, "run.sh is not a file"},
		{map[string]string{"run.sh": "->../x"}, "escapes"},
		{map[string]string{"run.sh": "\ufeff#!/bin/sh\n"}, "byte order mark"},
		{map[string]string{"run.sh": "#!/bin/sh -e\r\n"}, "CRLF"},
		{script(map[string]string{"a": "->b", "b": "->/usr/bin/python3"}), `a is a symbolic link to "b", which leads to b, a link to the absolute path "/usr/bin/python3"; list it in a .tdfignore`},
		{script(map[string]string{"l": "->/etc/passwd"}), `l is a symbolic link to "/etc/passwd", which is an absolute path`},
		{script(map[string]string{"l": "->../x"}), "which leads out of the directory"},
		{script(map[string]string{"d/l": "->../../x"}), "which leads out of the directory"},
		{script(map[string]string{"d/e/": "", "l": "->d/e", "m": "->l/../../../x"}), "leads out of the directory"},
		{script(map[string]string{"d/e/f/": "", "l": "->d/e/f", "m": "->l/../../../run.sh"}), "leads out of the directory"},
		{script(map[string]string{"l": "->nothing"}), "which does not exist or is not part"},
		{script(map[string]string{"l": "->.git/x", ".git/x": ""}), "which does not exist or is not part"},
		{script(map[string]string{"l": "->run.sh/x"}), "which uses a file as a directory"},
		{script(map[string]string{"a": "->b", "b": "->a"}), "which leads in a circle"},
		{script(map[string]string{"a\nb": ""}), `the name "a\nb" cannot be packed`},
		{script(map[string]string{`a\b`: ""}), "cannot be packed"},
		{script(map[string]string{"a\xff": ""}), "cannot be packed"},
		{script(map[string]string{".tdfignore": "a\n!b\n"}), `.tdfignore, line 2: "!b" begins with !`},
		{script(map[string]string{".tdfignore": "a/**/b\n"}), "line 1: \"a/**/b\" contains **"},
		{script(map[string]string{".tdfignore": "[a\n"}), "line 1: \"[a\" is not a valid pattern"},
		{script(map[string]string{".tdfignore": "/\n"}), "line 1: \"/\" is not a valid pattern"},
		{script(map[string]string{".tdfignore": "run.sh\n"}), "contains no run.sh"},
	} {
		dir := plant(t, t.TempDir(), c.files)
		_, err := program.Pack(dir)
		expect.Fails(t, err, c.want)
		expect.True(t, strings.HasPrefix(err.Error(), "pack "+dir), c.files, "got", err, "want", c.want)
	}
	dir := plant(t, t.TempDir(), script(map[string]string{}))
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644))
	expect.Result(program.Pack(dir)).Fails(t, "pipe: is a socket, a pipe or a device")
	plant(t, dir, map[string]string{".tdfignore": "pipe"})
	expect.Result(program.Pack(dir)).OK(t)
	for _, none := range []string{filepath.Join(dir, "nothing"), filepath.Join(dir, "run.sh")} {
		expect.Result(program.Pack(none)).Fails(t, "", none, "is packed")
	}
}

func TestPackedNames(t *testing.T) {
	for base, want := range map[string]string{
		"sim": "sim", ".hidden": "hidden", "a b/": "a-b", "größe_1.2": "größe_1.2", "--": "program", "$x;y": "x-y",
		strings.Repeat("é", 120): strings.Repeat("é", 95),
	} {
		dir := plant(t, filepath.Join(t.TempDir(), base), map[string]string{"run.sh": packedScript})
		p := expect.Result(program.Pack(dir)).Value(t)
		expect.Equal(t, p.Name[:len(p.Name)-9], want, base, "is named")
		d := task.Defaults(p.Name, p.Source, "")
		must(t, d.Validate())
	}
	dir := plant(t, filepath.Join(t.TempDir(), "here"), map[string]string{"run.sh": packedScript})
	t.Chdir(dir)
	if p, err := program.Pack("."); err != nil || !strings.HasPrefix(p.Name, "here-") {
		t.Errorf("got %s, %v", p.Name, err)
	}
}

func TestPackTooLarge(t *testing.T) {
	noise := make([]byte, 40<<20)
	for source, i := rand.New(rand.NewPCG(1, 2)), 0; i < len(noise); i++ {
		noise[i] = byte(source.Uint32())
	}
	dir := plant(t, t.TempDir(), map[string]string{"run.sh": packedScript, "small": "x"})
	for _, name := range []string{"one", "two"} {
		must(t, os.WriteFile(filepath.Join(dir, name), noise, 0o644))
	}
	_, err := program.Pack(dir)
	want := fmt.Sprintf("the archive has more than %d bytes (%d unpacked), too many to store in Redis; the largest files are one (41943040 bytes), two (41943040 bytes), run.sh",
		programs.MaxBytes, 2*len(noise)+len(packedScript)+1)
	expect.Fails(t, err, want)
	must(t, os.Remove(filepath.Join(dir, "two")))
	p := expect.Result(program.Pack(dir)).Value(t)
	_, got := fetched(t, p)
	expect.True(t, got["one"] == "-rw-r--r-- "+string(noise), "the fetched file one differs from the packed one")
}

// Pack refuses a program exactly if workers with default limits would refuse it.
func TestPackKeepsToTheLimitsOfWorkers(t *testing.T) {
	deep := plant(t, t.TempDir(), map[string]string{"run.sh": packedScript, strings.Repeat("d/", 200) + "x": "x"})
	p := expect.Result(program.Pack(deep)).Value(t)
	fetched(t, p)
	large := plant(t, t.TempDir(), map[string]string{"run.sh": packedScript})
	f := expect.Result(os.Create(filepath.Join(large, "zeros"))).Value(t)
	defer f.Close()
	must(t, f.Truncate(fetch.DefaultBytes)) // together with run.sh, this exceeds the limit
	expect.Result(program.Pack(large)).Fails(t, fmt.Sprintf("workers unpack at most %d", fetch.DefaultBytes))
	many, err := os.MkdirTemp("/dev/shm", "many") // in memory, because this takes many times as long on a disk
	if err != nil {
		many = t.TempDir()
	}
	defer os.RemoveAll(many)
	plant(t, many, map[string]string{"run.sh": packedScript})
	for i := range fetch.DefaultEntries {
		must(t, os.Symlink("run.sh", filepath.Join(many, strconv.Itoa(i))))
	}
	expect.Result(program.Pack(many)).Fails(t, fmt.Sprintf("the %d files and directories", fetch.DefaultEntries))
}

func TestPush(t *testing.T) {
	cfg := testspace.Config(t, redistest.Shared(t))
	m := testspace.Manager(t, cfg)
	dir := plant(t, filepath.Join(t.TempDir(), "p"), map[string]string{"run.sh": packedScript})
	packed := expect.Result(program.Pack(dir)).Value(t)
	for range 2 {
		got, err := program.Push(t.Context(), m, dir)
		want := program.Pushed{Program: packed.Name, Source: packed.Source, Files: 1, Bytes: int64(len(packed.Archive))}
		expect.NoError(t, err)
		expect.Equal(t, got, want)
	}
	store := expect.Result(redisstate.Connect(t.Context(), cfg.Redis, cfg.Namespace, nil)).Value(t)
	defer store.Close()
	stored := expect.Result(store.Programs.Program(t.Context(), packed.Source[len("redis:"):])).Value(t)
	expect.Equal(t, stored, packed.Archive)
	expect.Result(program.Push(t.Context(), m, t.TempDir())).Fails(t, "no run.sh")
}
