package retention

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
)

// Files that no journal names belong to users, even if their names look like those of output files.
func TestFilesOfUsersStay(t *testing.T) {
	dir := t.TempDir()
	files := []string{
		"hand/results/lr-0.01-3-5.out", "hand/results/exp-2023-7.err", "a/results/w-1-0.out", "a/results/w-1-0.files/x",
		"a/results/w-1-0.scratch/y",
	}
	put(t, dir, 52*week, files...)
	p := byDefault(dir)
	p.MaxBytes = 1
	checkLeft(t, p, files...)
}

// A user removes or moves an output file, and gives another file its name. Apply does not remove that file. It does not
// remove a copy of an output file either.
func TestFilesInPlaceOfOutputStay(t *testing.T) {
	dir := t.TempDir()
	keep(t, dir, 52*week, "a/results/w-1-0.out", "a/results/w-2-0.out", "a/results/w-3-0.files/x")
	put(t, dir, 52*week, "copy/results/w-1-0.out", "new", "newer/y")
	must(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "a/results/w-1-0.out")))
	must(t, os.Rename(filepath.Join(dir, "a/results/w-2-0.out"), filepath.Join(dir, "a/moved.out")))
	must(t, os.RemoveAll(filepath.Join(dir, "a/results/w-3-0.files")))
	must(t, os.Rename(filepath.Join(dir, "newer"), filepath.Join(dir, "a/results/w-3-0.files")))
	age(t, filepath.Join(dir, "a/results/w-3-0.files"), 52*week)
	checkLeft(t, byDefault(dir), "a/results/w-1-0.out", "a/moved.out", "a/results/w-3-0.files/y", "copy/results/w-1-0.out")
}

// Without the journal, no file is known to be the worker's.
func TestLostJournal(t *testing.T) {
	dir := t.TempDir()
	keep(t, dir, 52*week, "a/results/w-1-0.out")
	must(t, os.RemoveAll(filepath.Join(dir, journalDir)))
	checkLeft(t, byDefault(dir), "a/results/w-1-0.out")
}

// A working directory may be moved.
func TestMovedDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "old")
	keep(t, dir, 52*week, "a/results/w-1-0.out")
	must(t, os.Rename(dir, dir+"er"))
	checkLeft(t, byDefault(dir+"er"), "a/results/")
}

// Each file is made as a worker makes it if its configuration contains the pattern.
func TestConfiguredNames(t *testing.T) {
	for name, c := range map[string]struct {
		pattern string
		file    string
		left    []string
	}{
		"by default":                         {"$program/results/$worker-$taskId-$round.out", "p/results/w-7-0.out", []string{"p/results/"}},
		"in the working directory":           {"$taskId", "7", nil},
		"directories for each round":         {"out/$taskId/$round/stdout.txt", "out/7/0/stdout.txt", []string{"out/"}},
		"a directory that users share":       {"$taskId/x/stdout.txt", "7/x/stdout.txt", []string{"7/x/"}},
		"dots":                               {"./$program/../x//$taskId.err", "x/7.err", []string{"x/"}},
		"above the working directory":        {"../$taskId.out", "../7.out", nil},
		"an absolute name":                   {"BASE/logs/$taskId/out", "../logs/7/out", nil},
		"a name that rounds share":           {"p/$worker.out", "p/w.out", []string{"p/w.out"}},
		"a name without a task, but an id":   {"$taskId/../p/last.out", "p/last.out", []string{"p/last.out"}},
		"an absolute name that rounds share": {"/dev/null", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			dir := filepath.Join(base, "work")
			j := NewJournal(dir)
			fill := strings.NewReplacer("$program", "p", "$worker", "w", "$taskId", "7", "$round", "0").Replace
			pattern := strings.ReplaceAll(c.pattern, "BASE", base)
			if c.file != "" {
				put(t, dir, 52*week, c.file)
			}
			parent := expect.Result(os.Open(filepath.Dir(filepath.Join(dir, c.file)))).Value(t)
			must(t, j.Add("7", pattern, fill, parent, filepath.Base(c.file)))
			parent.Close()
			j.Close()
			must(t, os.MkdirAll(dir, 0o755))
			for range 3 { // for a file and two directories
				expect.Result(byDefault(dir).Apply(t.Context())).OK(t)
				for at := filepath.Dir(filepath.Join(dir, c.file)); at != dir && at != base; at = filepath.Dir(at) {
					_ = os.Chtimes(at, time.Time{}, time.Now().Add(-day))
				}
			}
			checkLeft(t, byDefault(dir), c.left...)
			_, err := os.Lstat(filepath.Join(dir, c.file))
			if c.left == nil && c.file != "" {
				expect.Fails(t, err, "", "the file is still there")
			}
		})
	}
}

// In an absolute name, the part before the first placeholder may contain links. Links below that part are not followed.
func TestLinksInAnAbsoluteName(t *testing.T) {
	dir, disk := t.TempDir(), t.TempDir()
	logs := filepath.Join(t.TempDir(), "logs")
	must(t, os.Symlink(disk, logs))
	put(t, disk, 52*week, "a/1.out", "b/2.out")
	j := NewJournal(dir)
	for _, name := range []string{"a/1", "b/2"} {
		parent := expect.Result(os.Open(filepath.Join(logs, filepath.Dir(name)))).Value(t)
		fill := strings.NewReplacer("$program", filepath.Dir(name), "$taskId", filepath.Base(name)).Replace
		must(t, j.Add(name, logs+"/$program/$taskId.out", fill, parent, filepath.Base(name)+".out"))
		parent.Close()
	}
	j.Close()
	must(t, os.Rename(filepath.Join(disk, "b"), filepath.Join(disk, "c")))
	must(t, os.Symlink("c", filepath.Join(disk, "b")))
	checkLeft(t, byDefault(dir))
	p := byDefault(disk)
	checkLeft(t, p, "a/", "b", "c/2.out")
}

// If a program removes the file of a journal, only the files that this file named stay.
func TestJournalFileRemoved(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, 52*week, "1.out", "2.out")
	at := expect.Result(os.Open(dir)).Value(t)
	defer at.Close()
	j := NewJournal(dir)
	defer j.Close()
	must(t, j.add(entry{Round: "1", Path: "1.out"}, at, "1.out"))
	must(t, os.RemoveAll(filepath.Join(dir, ".tdf")))
	must(t, j.add(entry{Round: "2", Path: "2.out"}, at, "2.out"))
	checkLeft(t, byDefault(dir), "1.out")
}

// Lines that a worker did not write to their end, or that a program has changed, do no harm.
func TestDamagedJournal(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	keep(t, dir, 52*week, "a/results/w-1-0.out")
	put(t, outside, 52*week, "x")
	put(t, dir, 52*week, "b")
	at := expect.Result(os.Open(outside)).Value(t)
	defer at.Close()
	id := expect.Result(identify(int(at.Fd()), "x")).Value(t)
	up := expect.Result(filepath.Rel(dir, filepath.Join(outside, "x"))).Value(t)
	var lines []string
	for _, e := range []entry{
		{Path: up},
		{Path: filepath.Join(outside, "x")},
		{Path: ".."},
		{Path: "."},
		{Path: ""},
		{Path: "x", Base: filepath.Join("..", filepath.Base(outside))},
		{Path: "a/../b"},
		{Path: "a/results/w-1-0.out/deeper", Own: 1 << 40},
		{Path: "gone", Own: -1},
	} {
		e.identity = id
		line := expect.Result(json.Marshal(e)).Value(t)
		lines = append(lines, string(line))
	}
	lines = append(lines, "{", "null", "7", strings.Repeat("x", 3*maxLine), "\x00\x00\x00", `{"path":"b"`)
	must(t, os.WriteFile(filepath.Join(dir, journalDir, "hostile"), []byte(strings.Join(lines, "\n")), 0o600))
	keep(t, dir, 52*week, "a/results/w-2-0.out")
	checkLeft(t, byDefault(dir), "a/results/", "b")
	expect.Len(t, listLeft(t, outside), 1, "outside")
}

// Apply does not trust a journal that another user may have written.
func TestJournalOfOthers(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, path string){
		"writable for all": func(t *testing.T, path string) { must(t, os.Chmod(path, 0o666)) },
		"several names":    func(t *testing.T, path string) { must(t, os.Link(path, path+"2")) },
		"a link": func(t *testing.T, path string) {
			must(t, os.Rename(path, filepath.Join(filepath.Dir(path), "../moved")))
			must(t, os.Symlink("../moved", path))
		},
		"a pipe": func(t *testing.T, path string) {
			must(t, os.Remove(path))
			must(t, syscall.Mkfifo(path, 0o600))
		},
		"a directory": func(t *testing.T, path string) {
			must(t, os.Remove(path))
			must(t, os.Mkdir(path, 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			keep(t, dir, 52*week, "a/results/w-1-0.out")
			change(t, segments(t, dir)[0])
			removed, err := byDefault(dir).Apply(t.Context())
			expect.Fails(t, err, "")
			expect.Equal(t, removed, Removed{})
		})
	}
}

func TestJournalOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	dir := t.TempDir()
	keep(t, dir, 52*week, "a/results/w-1-0.out")
	must(t, os.Chown(segments(t, dir)[0], 65534, 65534))
	checkLeft(t, byDefault(dir), "a/results/w-1-0.out")
}

func segments(t *testing.T, dir string) []string {
	t.Helper()
	found := expect.Result(filepath.Glob(filepath.Join(dir, journalDir, "*"))).Value(t)
	return found
}

// A journal's file is removed when its files are gone, but not while a worker may still add to it.
func TestJournalsAreRemoved(t *testing.T) {
	for name, c := range map[string]struct {
		ofFile, ofJournal time.Duration
		journals          int
	}{
		"a file remains":            {day, day, 1},
		"all files gone":            {52 * week, day, 0},
		"a worker may use it still": {52 * week, segmentTime, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			keep(t, dir, c.ofFile, "a/results/w-1-0.out", "a/results/w-1-0.err")
			for range 2 { // the first call removes the files
				age(t, segments(t, dir)[0], c.ofJournal)
				expect.Result(byDefault(dir).Apply(t.Context())).OK(t)
			}
			expect.Equal(t, len(segments(t, dir)), c.journals, "files of journals")
		})
	}
}

// In each execution of a round, the directories beside the output file are named after that file.
func TestNamesOfExecutions(t *testing.T) {
	for _, c := range []struct{ pattern, first, second, files string }{
		{"$program/$taskId-$round.out", "$program/$taskId-$round.out", "$program/$taskId-$round~2.out", "$program/$taskId-$round~2.files"},
		{"a.b/$taskId", "a.b/$taskId", "a.b/$taskId~2", "a.b/$taskId~2.files"},
		{"out.$taskId", "out.$taskId", "out.$taskId~2", "out.$taskId~2.files"},
	} {
		expect.Equal(t, Execution(c.pattern, 1), c.first, "first")
		expect.Equal(t, Execution(c.pattern, 2), c.second, "second")
		expect.Equal(t, Execution(Beside(c.pattern, ".files"), 2), c.files, "beside")
	}
}
