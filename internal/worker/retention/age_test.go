package retention

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/fetch"
	"github.com/tdf-framework/tdf/internal/expect"
)

func TestKeep(t *testing.T) {
	dir := t.TempDir()
	keep(t, dir, week+time.Hour, "a/results/w-1-0.out", "a/results/w-1-0.err", "b/results/gone.host-12-3.out")
	keep(t, dir, week-time.Hour, "a/results/w-2-0.out", "a/results/w-2-0.err")
	put(t, dir, 52*week, "a/run.sh", "a/results/notes", "a/results/w-1-0.txt", "a/results/w-1.out", "a/results/w-01-0.out",
		"a/results/w-1-0.out.gz", "a/results/.w-1-0.out", "a/w-1-0.out", ".hidden/results/w-1-0.out", "a/results/sub/w-1-0.out")
	removed := checkLeft(t, byDefault(dir), "a/results/w-2-0.out", "a/results/w-2-0.err", "b/results/",
		"a/run.sh", "a/results/notes", "a/results/w-1-0.txt", "a/results/w-1.out", "a/results/w-01-0.out",
		"a/results/w-1-0.out.gz", "a/results/.w-1-0.out", "a/w-1-0.out", ".hidden/results/w-1-0.out", "a/results/sub/w-1-0.out")
	expect.Equal(t, cmp.Diff(Removed{Files: 3, Bytes: 30}, removed), "")
}

// The files of a round are removed together, when its newest file is old.
func TestRoundsGoTogether(t *testing.T) {
	dir := t.TempDir()
	for i, young := range []string{"out", "err", "files", "scratch", ""} {
		name := fmt.Sprintf("a/results/w-%d-0.", i+1)
		keep(t, dir, 2*week, name+"out", name+"err", name+"files/deep/x", name+"scratch/x")
		age(t, filepath.Join(dir, name+"files"), 2*week)
		age(t, filepath.Join(dir, name+"scratch"), 2*week)
		if young != "" {
			age(t, filepath.Join(dir, name+young), day)
		}
	}
	var want []string
	for i := range 4 {
		name := fmt.Sprintf("a/results/w-%d-0.", i+1)
		want = append(want, name+"out", name+"err", name+"files/deep/x", name+"scratch/x")
	}
	expect.Equal(t, cmp.Diff(Removed{Files: 4, Bytes: 40}, checkLeft(t, byDefault(dir), want...)), "")
}

func TestForever(t *testing.T) {
	dir := t.TempDir()
	keep(t, dir, 2000*week, "a/results/w-1-0.out")
	install(t, dir, "b", 2000*week)
	p := byDefault(dir)
	p.Keep = Forever
	checkLeft(t, p, "a/results/w-1-0.out", "b/run.sh", "b/results/w-1-0.out")
}

func TestKeepWithoutALimit(t *testing.T) {
	dir := t.TempDir()
	keep(t, dir, 52*week, "a/results/w-1-0.out")
	for _, keep := range []time.Duration{0, -1} {
		p := byDefault(dir)
		p.Keep = keep
		_, err := p.Apply(t.Context())
		expect.Fails(t, err, "", "Keep", keep)
		expect.Len(t, listLeft(t, dir), 1, "Keep", keep)
	}
}

// After the clock was set back, files have times in the future. These files count as new for both limits.
func TestClockSetBack(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, 52 * week} {
		dir := t.TempDir()
		keep(t, dir, -ahead, "a/results/w-1-0.out")
		keep(t, dir, 52*week, "a/results/w-1-0.err", "a/results/w-2-0.out")
		install(t, dir, "b", -ahead)
		p := byDefault(dir)
		p.MaxBytes = 1
		checkLeft(t, p, "a/results/w-1-0.out", "a/results/w-1-0.err", "b/run.sh", "b/results/w-1-0.out")
	}
}

// After the clock was set ahead, all files count as old.
func TestClockSetAhead(t *testing.T) {
	for ahead, want := range map[time.Duration][]string{
		time.Hour: {"a/results/w-1-0.out", "b/run.sh", "b/results/w-1-0.out"},
		52 * week: {"a/results/"},
	} {
		dir := t.TempDir()
		keep(t, dir, ahead, "a/results/w-1-0.out")
		install(t, dir, "b", ahead)
		checkLeft(t, byDefault(dir), want...)
	}
}

func TestPrograms(t *testing.T) {
	dir := t.TempDir()
	install(t, dir, "old", 2*week)
	install(t, dir, "young", day)
	install(t, dir, "running", 2*week)
	put(t, dir, 52*week, "byhand/run.sh", "byhand/data")
	keep(t, dir, 2*week, "old/results/w-5-0.out")
	keep(t, dir, day, "old/results/w-6-0.out")
	p := byDefault(dir)
	p.InUse = func(path string) bool { return path == filepath.Join(dir, "running") }
	removed := checkLeft(t, p, "young/run.sh", "young/results/w-1-0.out", "running/run.sh", "running/results/w-1-0.out",
		"byhand/run.sh", "byhand/data", "old/results/w-6-0.out")
	expect.Equal(t, cmp.Diff(Removed{Files: 1, Programs: 1, Bytes: 1020}, removed), "")
	info := expect.Result(os.Stat(filepath.Join(dir, "running", ".tdf-program.json"))).Value(t)
	expect.Compare(t, time.Since(info.ModTime()), "<=", time.Hour, "the last use of the running program was not updated, so other workers may remove the program")
}

// A copy counts as a program, and goes before its original. If only the copy is in use, both stay.
func TestCopiesOfPrograms(t *testing.T) {
	dir := t.TempDir()
	for _, program := range []string{"old", "running"} {
		install(t, dir, program, 2*week)
		source := "rsync:/nowhere/run.sh"
		must(t, errors.Join(os.Remove(filepath.Join(dir, program, ".tdf-program.json")), os.Remove(filepath.Join(dir, program, ".tdf-install.json"))))
		with := fetch.CopyOptions{Number: 2, MaxBytes: 1 << 20, Busy: func() bool { return false }}
		expect.Result((&fetch.Fetcher{Dir: dir, Outputs: "results"}).Copy(t.Context(), program, source, with)).OK(t)
		age(t, filepath.Join(dir, program+"~2", ".tdf-program.json"), 2*week)
	}
	p := byDefault(dir)
	p.InUse = func(path string) bool { return path == filepath.Join(dir, "running~2") }
	removed := checkLeft(t, p, "old/run.sh", "old/results/w-1-0.out", "running/run.sh", "running/results/w-1-0.out", "running~2/run.sh", "running~2/results/")
	expect.Equal(t, removed.Programs, 1)
}

func TestRoundsInUseStay(t *testing.T) {
	dir := t.TempDir()
	keep(t, dir, 52*week, "a/results/w-1-0.out", "a/results/w-1-0.err", "a/results/w-2-0.out")
	p := byDefault(dir)
	p.MaxBytes = 1
	p.InUse = func(path string) bool { return path == filepath.Join(dir, "a/results/w-1-0.err") }
	checkLeft(t, p, "a/results/w-1-0.out", "a/results/w-1-0.err")
}

func TestCancelled(t *testing.T) {
	dir := t.TempDir()
	keep(t, dir, 52*week, "a/results/w-1-0.out")
	install(t, dir, "b", 52*week)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("stopping")
	cancel(why)
	removed, err := byDefault(dir).Apply(ctx)
	expect.FailsWith(t, err, why)
	expect.Equal(t, removed, Removed{})
	expect.Len(t, listLeft(t, dir), 3)
}

func TestNoDirectory(t *testing.T) {
	expect.Result(byDefault(filepath.Join(t.TempDir(), "gone")).Apply(t.Context())).Is(t, Removed{})
}

// There are many files in one directory. Only every tenth file is new, and stays.
func TestManyFiles(t *testing.T) {
	dir := t.TempDir()
	var want []string
	var all []string
	for i := range 300 {
		all = append(all, fmt.Sprintf("a/results/w-%d-0.out", i+1), fmt.Sprintf("a/results/w-%d-0.err", i+1))
	}
	keep(t, dir, week+day, all...)
	for i := range 300 {
		name := fmt.Sprintf("a/results/w-%d-0", i+1)
		if i%10 == 0 {
			age(t, filepath.Join(dir, name+".err"), day)
			want = append(want, name+".out", name+".err")
		}
	}
	expect.Equal(t, checkLeft(t, byDefault(dir), want...).Files, 540)
}

// The files of an old execution are removed, even if the round has newer executions.
func TestExecutionsAreRemovedOneByOne(t *testing.T) {
	dir := t.TempDir()
	keep(t, dir, 52*week, "p/results/w-1-0.out", "p/results/w-1-0.err")
	keep(t, dir, day, "p/results/w-1-0~2.out", "p/results/w-1-0~2.err")
	checkLeft(t, byDefault(dir), "p/results/w-1-0~2.err", "p/results/w-1-0~2.out")
}
