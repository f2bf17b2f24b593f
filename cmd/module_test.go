package cmd_test

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/gobuild"
)

// The complete manager of docs/manager.md is built in a module of its own. It counts words, with its program over rsync
// and over http, while the test kills it, the server and the workers at random moments.
func TestManagerOfItsOwnModule(t *testing.T) {
	command := buildModule(t, afterHeading(managerPage(t), "`main.go`:\n"))
	script := t.TempDir()
	must(t, os.WriteFile(filepath.Join(script, "run.sh"), []byte(afterHeading(managerPage(t), "`run.sh`, the program:\n")), 0o755))
	web := httptest.NewServer(http.FileServer(http.Dir(script)))
	t.Cleanup(web.Close)
	for name, source := range map[string]string{"rsync": "rsync:" + script + "/run.sh", "http": web.URL + "/run.sh"} {
		t.Run(name, func(t *testing.T) { countWithKills(t, command, source) })
	}
}

// The simple manager with which docs/manager.md begins prints the number that the page names.
func TestSimpleManager(t *testing.T) {
	page := managerPage(t)
	s := newSite(t)
	s.server()
	s.worker("w", "concurrency=2\n")
	dir := t.TempDir()
	must(t, os.Rename(s.config(""), filepath.Join(dir, "manager.cfg")))
	must(t, os.Mkdir(filepath.Join(dir, "primes"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "primes", "run.sh"), []byte(afterHeading(page, "`primes/run.sh`")), 0o755))
	main := filepath.Join(dir, "main.go")
	must(t, os.WriteFile(main, []byte(afterHeading(page, "Save the manager as `main.go`, ")), 0o644))
	command := filepath.Join(dir, "manager")
	must(t, gobuild.Build(".", command, main))
	c := exec.Command(command)
	c.Dir = dir
	p := launch(t, c, environment(), nil)
	p.exits(0, "")
	number := strings.TrimSpace(p.stdout.String())
	expect.NotEqual(t, number, "")
	expect.Contains(t, page, "it prints "+number+":")
}

func managerPage(t *testing.T) string {
	t.Helper()
	return string(expect.Result(os.ReadFile("../docs/manager.md")).Value(t))
}

// afterHeading returns the first block of code after a line.
func afterHeading(page, line string) string {
	_, rest, _ := strings.Cut(page, line)
	_, rest, _ = strings.Cut(rest, "```")
	_, rest, _ = strings.Cut(rest, "\n") // the language
	block, _, _ := strings.Cut(rest, "```")
	return block
}

// buildModule builds a command in a new module, and returns its path.
func buildModule(t *testing.T, main string) string {
	t.Helper()
	dir := t.TempDir()
	root := expect.Result(filepath.Abs("..")).Value(t)
	sums := expect.Result(os.ReadFile("../go.sum")).Value(t)
	must(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(main), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o644))
	for _, args := range [][]string{
		{"mod", "init", "words"},
		{"mod", "edit", "-require=github.com/tdf-framework/tdf@v0.0.0", "-replace=github.com/tdf-framework/tdf=" + root},
		{"build", "-mod=mod", "-o", "words", "."},
	} {
		c := exec.Command("go", args...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		expect.MustTrue(t, err == nil, "go", args, err, string(out))
	}
	return filepath.Join(dir, "words")
}

// mostLost is how often the test kills a worker: a task may lose so many rounds.
const mostLost = 3

func countWithKills(t *testing.T, command, source string) {
	s := newSite(t)
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	texts, want := someTexts(t, random, 100)
	counts := t.TempDir()
	dir := t.TempDir()
	must(t, os.Rename(s.config(""), filepath.Join(dir, "manager.cfg")))
	starts := []func() *process{
		func() *process {
			c := exec.Command(command, append([]string{source, counts}, texts...)...)
			c.Dir = dir
			return launch(t, c, environment(), nil)
		},
		func() *process { return start(t, "tdf-server", "s", s.config("")) },
		func() *process { return s.worker("w1", "concurrency=2\nkill_grace=0.05\n") },
		func() *process { return s.worker("w2", "kill_grace=0.05\n") },
	}
	running := make([]*process, len(starts))
	for i, again := range starts {
		running[i] = again()
	}
	lost := 0
	for range 20 {
		s.awaitCommands(random.IntN(150))
		i := random.IntN(len(starts))
		if i >= 2 {
			if lost++; lost > mostLost {
				i = 0
			}
		}
		running[i].cmd.Process.Kill() // the manager may have ended
		<-running[i].ended
		running[i] = starts[i]()
	}
	running[0].exits(0, "")
	expect.Equal(t, running[0].stdout.String(), strings.ReplaceAll(want, "=", " "))
	expect.Len(t, expect.Result(os.ReadDir(counts)).Value(t), len(texts), "the callbacks have written", counts)
	for _, p := range running[1:] {
		p.kill()
	}
}
