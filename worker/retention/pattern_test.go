package retention

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestPatterns(t *testing.T) {
	for _, tt := range []struct {
		name, output, failure string
		files, stay           []string // old files to remove; old files to keep
		want                  []string // entries that are left in addition to the files to keep
	}{
		{
			"worker and round without anything between", "$worker$round-$taskId", "$worker$round-$taskId.err",
			[]string{"w10-7", "w10-7.err"},
			[]string{"notes", "w1", "w-7", "10-7.txt", "10-7/x", "prog/w10-7"},
			nil,
		},
		{
			"task and program", "$program/$taskId$program", "$program/$taskId$program.err",
			[]string{"a/1a", "a/1a.err"},
			[]string{"a/1b", "a/a1", "a/run.sh", "b/a"},
			nil,
		},
		{
			"a directory for each task", "out/$taskId/$round/stdout.txt", "err/$taskId/$round/stderr.txt",
			[]string{"out/1/0/stdout.txt", "err/1/0/stderr.txt", "out/1/0/stdout.files/x"},
			[]string{"out/1/x/stdout.txt", "out/1/0/other", "out/1/stdout.txt"},
			[]string{"err/1/0/"},
		},
		{
			"no extension", "$program/$taskId", "$program/$taskId-err",
			[]string{"a/1", "a/1-err", "a/1.files/x", "a/1.scratch/x"},
			[]string{"a/1.out", "a/x.files/x"},
			nil,
		},
		{
			"characters that mean something in expressions", "$program/(.*)+[a]^$taskId|x.o?", "$program/\\$taskId.e",
			[]string{"a/(.*)+[a]^1|x.o?", "a/\\2.e"},
			[]string{"a/(.*)+[a]^1|xyo?", "a/x", "a/1.e"},
			nil,
		},
		{
			"several executions of one round", "$program/$worker-$taskId-$round.out", "$program/$taskId.$round",
			[]string{"a/w-1-0.out", "a/w-1-0~2.out", "a/w-1-0~12.files/x", "a/w-1-0~2.scratch/x", "a/1.0", "a/1.0~2"},
			[]string{"a/w-1-0~.out", "a/w-1-0~0.out", "a/w-1-0~2x.out", "a/1.0~x", "a/1.0~99999", "a/w-1-0.out~2"},
			nil,
		},
		{
			"dots", "./$program/../$taskId.out", "$program/./x//$taskId.err",
			[]string{"1.out", "a/x/1.err"},
			[]string{"a/1.out", "x.out"},
			[]string{"a/x/"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, 52*week, append(tt.files, tt.stay...)...)
			for _, name := range tt.files {
				if parent := filepath.Dir(name); parent != "." {
					age(t, filepath.Join(dir, parent), 52*week)
				}
			}
			p := byDefault(dir)
			p.OutputPattern, p.ErrorPattern = tt.output, tt.failure
			checkLeft(t, p, append(tt.want, tt.stay...)...)
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
		if got := Execution(c.pattern, 1); got != c.first {
			t.Errorf("first: %s, want %s", got, c.first)
		}
		if got := Execution(c.pattern, 2); got != c.second {
			t.Errorf("second: %s, want %s", got, c.second)
		}
		if got := Execution(Beside(c.pattern, ".files"), 2); got != c.files {
			t.Errorf("beside: %s, want %s", got, c.files)
		}
	}
}

// The files of an old execution are removed, even if the round has newer executions.
func TestExecutionsAreRemovedOneByOne(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, 52*week, "p/results/w-1-0.out", "p/results/w-1-0.err")
	put(t, dir, day, "p/results/w-1-0~2.out", "p/results/w-1-0~2.err")
	checkLeft(t, byDefault(dir), "p/results/w-1-0~2.err", "p/results/w-1-0~2.out")
}

// A file that all rounds share never counts as old. Other files are removed.
func TestSharedFiles(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, 52*week, "a/last.out", "a/w.out", "a/0.out", "a/1.err")
	install(t, dir, "b", 52*week)
	for _, output := range []string{"a/last.out", "$program/$worker.out", "$program/$round.out", "/dev/null", "$taskId/../a/last.out", "."} {
		p := byDefault(dir)
		p.OutputPattern, p.ErrorPattern = output, "$program/$taskId.err"
		put(t, dir, 52*week, "a/1.err")
		removed, err := p.Apply(t.Context())
		if !errors.Is(err, ErrShared) || removed.Files != 1 || len(listLeft(t, dir)) != 3 {
			t.Errorf("%s: %+v, %v, %v", output, removed, err, listLeft(t, dir))
		}
	}
}

// In an absolute name, the part before the first placeholder may contain links. Links below that part are not
// followed.
func TestAbsolutePattern(t *testing.T) {
	dir, disk := t.TempDir(), t.TempDir()
	logs := filepath.Join(t.TempDir(), "logs")
	must(t, os.Symlink(disk, logs))
	put(t, disk, 52*week, "a/1.out", "a/2.out.gz", "2.out")
	put(t, dir, 52*week, "a/1.out")
	must(t, os.Symlink("a", filepath.Join(disk, "link")))
	p := byDefault(dir)
	p.OutputPattern, p.ErrorPattern = logs+"/$program/$taskId.out", logs+"/$program/$taskId.err"
	checkLeft(t, p, "a/1.out")
	p.Dir = disk
	p.Keep = Forever
	checkLeft(t, p, "2.out", "a/2.out.gz", "link")
}

func TestPatternAboveTheWorkingDirectory(t *testing.T) {
	top := t.TempDir()
	put(t, top, 52*week, "out/1.out", "work/1.out")
	p := byDefault(filepath.Join(top, "work"))
	p.OutputPattern, p.ErrorPattern = "../out/$taskId.out", "../out/$taskId.err"
	checkLeft(t, p, "1.out")
	if got := listLeft(t, filepath.Join(top, "out")); len(got) != 0 {
		t.Error(got)
	}
}

// An empty directory that was made for a task is removed when it is old.
func TestEmptyDirectoriesOfTasks(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"out/1", "out/2", "out/x", "young/3"} {
		must(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
		age(t, filepath.Join(dir, name), 52*week)
	}
	age(t, filepath.Join(dir, "out/2"), day)
	p := byDefault(dir)
	p.OutputPattern, p.ErrorPattern = "out/$taskId/stdout", "out/$taskId/stderr"
	checkLeft(t, p, "out/2/", "out/x/", "young/3/")
	must(t, os.Mkdir(filepath.Join(dir, "byhand"), 0o755))
	age(t, filepath.Join(dir, "byhand"), 52*week)
	p.OutputPattern, p.ErrorPattern = "$program/$taskId.out", "$program/$taskId.err"
	checkLeft(t, p, "byhand/", "out/2/", "out/x/", "young/3/")
}
