package retention

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestMaxBytes(t *testing.T) {
	rounds := func(t *testing.T) string {
		dir := t.TempDir()
		keep(t, dir, 1*time.Hour, "a/results/w-1-0.out", "a/results/w-1-0.err")
		keep(t, dir, 2*time.Hour, "b/results/w-2-0.out", "b/results/w-2-0.files/x", "b/results/w-2-0.files/y/z")
		keep(t, dir, 3*time.Hour, "a/results/w-3-0.out")
		keep(t, dir, -week, "a/results/w-4-0.out") // dated in the future, so it stays young for the whole test
		age(t, filepath.Join(dir, "b/results/w-2-0.files"), 3*time.Hour)
		return dir
	}
	first := []string{"a/results/w-1-0.out", "a/results/w-1-0.err"}
	second := []string{"b/results/w-2-0.out", "b/results/w-2-0.files/x", "b/results/w-2-0.files/y/z"}
	third, young := "a/results/w-3-0.out", "a/results/w-4-0.out"
	for _, tt := range []struct {
		max  int64
		want []string
		gone Removed
	}{
		{0, append([]string{third, young}, append(first, second...)...), Removed{}},
		{70, append([]string{third, young}, append(first, second...)...), Removed{}},
		{69, append([]string{young}, append(first, second...)...), Removed{Files: 1, Bytes: 10}},
		{60, append([]string{young}, append(first, second...)...), Removed{Files: 1, Bytes: 10}},
		{59, append([]string{young, "b/results/"}, first...), Removed{Files: 3, Bytes: 40}},
		{29, []string{young, "b/results/"}, Removed{Files: 5, Bytes: 60}},
		{1, []string{young, "b/results/"}, Removed{Files: 5, Bytes: 60}},
	} {
		p := byDefault(rounds(t))
		p.MaxBytes = tt.max
		expect.Equal(t, cmp.Diff(tt.gone, checkLeft(t, p, tt.want...)), "", "MaxBytes", tt.max)
	}
}

// Programs and files are removed together in the order of their age. Their sizes count together.
func TestMaxBytesOfPrograms(t *testing.T) {
	const program = 1010 // size in bytes
	for _, tt := range []struct {
		max  int64
		want []string
	}{
		{2*program + 20, []string{"old/run.sh", "old/results/w-1-0.out", "new/run.sh", "new/results/w-1-0.out", "a/results/w-1-0.out", "a/results/w-2-0.out"}},
		{2*program + 19, []string{"old/run.sh", "old/results/w-1-0.out", "new/run.sh", "new/results/w-1-0.out", "a/results/w-1-0.out"}},
		{2*program + 9, []string{"new/run.sh", "new/results/w-1-0.out", "a/results/w-1-0.out"}},
		{program + 10, []string{"new/run.sh", "new/results/w-1-0.out", "a/results/w-1-0.out"}},
		{program + 9, []string{"new/run.sh", "new/results/w-1-0.out", "a/results/"}},
		{9, []string{"new/run.sh", "new/results/w-1-0.out", "a/results/"}}, // the program "new" stays, because its recorded last use may be an hour too old
	} {
		dir := t.TempDir()
		install(t, dir, "old", 5*time.Hour)
		install(t, dir, "new", time.Hour)
		keep(t, dir, 3*time.Hour, "a/results/w-1-0.out")
		keep(t, dir, 6*time.Hour, "a/results/w-2-0.out")
		p := byDefault(dir)
		p.MaxBytes = tt.max
		checkLeft(t, p, tt.want...)
	}
}
