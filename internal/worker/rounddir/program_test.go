package rounddir

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// Each program of docs/programs.md, "The round's directory", works in its second round.
func TestPrograms(t *testing.T) {
	for name, c := range map[string]struct {
		command    func(t *testing.T) []string
		checkpoint string
		after      string
	}{
		"sh":     {found("/bin/sh", "testdata/counter.sh"), "2\n", "5\n"},
		"Python": {found("python3", "testdata/counter.py"), `{"n": 2}`, `{"n": 5}`},
		"Go":     {built("./testdata/counter"), "2", "5"},
	} {
		t.Run(name, func(t *testing.T) {
			command := c.command(t)
			d := create(t, Before{Checkpoint: []byte(c.checkpoint), LastError: "it broke\nsomewhere"}, limits, nil)
			cmd := exec.Command(command[0], command[1:]...)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TDF_DIR=" + d.Path()}
			expect.MustLen(t, expect.Result(cmd.CombinedOutput()).Value(t), 0)
			sameReport(t, d.News(true), Report{
				Progress: "1 done", HasProgress: true, Checkpoint: []byte(c.after),
				Updates: []string{"before: it broke", "did 3", "did 4", "did 5"},
			})
			text, err := d.Result()
			expect.Equal(t, strings.TrimSpace(text), `{"count": 5}`)
			expect.NoError(t, err)
		})
	}
}

func found(interpreter, script string) func(t *testing.T) []string {
	return func(t *testing.T) []string {
		path, err := exec.LookPath(interpreter)
		must(t, err, interpreter+" is not on this machine: scripts/setup installs it")
		return []string{path, script}
	}
}

func built(folder string) func(t *testing.T) []string {
	return func(t *testing.T) []string {
		path := filepath.Join(t.TempDir(), "program")
		out, err := exec.Command("go", "build", "-o", path, folder).CombinedOutput()
		expect.MustTrue(t, err == nil, err, out)
		return []string{path}
	}
}
