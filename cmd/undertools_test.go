package cmd_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
)

// A toolWorld is a TDF, and a directory in which the lines of a section of docs/under-other-tools.md run.
type toolWorld struct {
	*testing.T
	dir, lines string
	env        []string
}

// newToolWorld starts a TDF. The directory gets the section's blocks of code in the given file, and copies of files of
// testdata/undertools.
func newToolWorld(t *testing.T, section, tool, file string, copied ...string) *toolWorld {
	t.Helper()
	t.Parallel()
	if tool != "" {
		_, err := exec.LookPath(tool)
		must(t, err, tool+" is missing: install it with scripts/setup "+tool)
	}
	w := &toolWorld{T: t, dir: t.TempDir()}
	page := string(expect.Result(os.ReadFile("../docs/under-other-tools.md")).Value(t))
	_, page, found := strings.Cut(page, "\n## "+section+"\n")
	expect.MustTrue(t, found, "the page has a section", section)
	page, _, _ = strings.Cut(page, "\n## ")
	before, code, hasCode := strings.Cut(page, "\n```")
	if hasCode {
		_, code, _ = strings.Cut(code, "\n")
		code, _, _ = strings.Cut(code, "```")
		w.write(file, code)
	}
	w.lines = strings.Join(regexp.MustCompile(`(?m)^    .*$`).FindAllString(before, -1), "\n")
	for _, name := range copied {
		must(t, exec.Command("cp", "testdata/undertools/"+name, w.dir).Run())
	}
	w.serve()
	return w
}

// serve starts a server and a worker.
func (w *toolWorld) serve() {
	w.Helper()
	host, port, err := net.SplitHostPort(redistest.Shared(w))
	must(w, err)
	cfg := write(w.T, "[tdf]\nnamespace=%s\n[redis]\nhost=%s\nport=%s\n"+
		"[worker]\ndirectory=%s\nconcurrency=8\nresources=cpus=8 memory=8G\n",
		redistest.Namespace(w), host, port, w.TempDir())
	start(w.T, "tdf-server", "s", cfg).logs("msg=serving")
	me := expect.Result(user.Current()).Value(w)
	bin := filepath.Dir(built(w.T, "tdf"))
	// /usr/bin has the python3 of Debian's packages. With CI=true, Snakemake does not sleep. Dask's default is 30 s.
	w.env = append(environment(), "TDF_CONFIG="+cfg,
		"PATH="+w.dir+":"+bin+":/usr/bin:"+os.Getenv("PATH"), "USER="+me.Username,
		"HOME="+w.dir, "CI=true", "LC_ALL=C.UTF-8",
		"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT=1h")
	launch(w.T, exec.Command(built(w.T, "tdf-worker"), "w", cfg), w.env, nil).logs("msg=working")
	w.Cleanup(func() { // before the end of the worker
		if !w.Failed() {
			eventually(w, "no process runs in the directory", func() bool { return len(w.processes()) == 0 })
		}
	})
}

// processes returns the processes that run in the directory.
func (w *toolWorld) processes() (found []string) {
	for _, cwd := range expect.Result(filepath.Glob("/proc/[0-9]*/cwd")).Value(w) {
		if dir, _ := os.Readlink(cwd); strings.HasPrefix(dir, w.dir) {
			found = append(found, cwd)
		}
	}
	return found
}

func (w *toolWorld) write(name, text string) {
	w.Helper()
	must(w, os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o755))
}

func (w *toolWorld) remove(name string) {
	w.Helper()
	must(w, os.Remove(filepath.Join(w.dir, name)))
}

// read returns the content of a file, or "" if it does not exist.
func (w *toolWorld) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(w.dir, name))
	return string(text)
}

// begin runs lines of a shell in a process group of their own, which signals reach as from a terminal.
func (w *toolWorld) begin(lines string) *process {
	w.Helper()
	cmd := exec.Command("sh", "-c", lines)
	cmd.Dir = w.dir
	return launch(w.T, cmd, w.env, &syscall.SysProcAttr{Setpgid: true})
}

// run runs lines of a shell, which end with the given status, and returns stdout.
func (w *toolWorld) run(status int, lines string) string {
	w.Helper()
	p := w.begin(lines)
	<-p.ended
	expect.Equal(w, p.cmd.ProcessState.ExitCode(), status, lines, p.stdout.String(), p.stderr.String())
	return p.stdout.String()
}

// interrupt sends SIGINT to the process group, as Ctrl-C does, and waits for its end.
func (p *process) interrupt() {
	p.Helper()
	must(p, syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT))
	<-p.ended
	expect.NotEqual(p, p.cmd.ProcessState.ExitCode(), 0)
}

// tasks returns how many tasks there are in the given states.
func (w *toolWorld) tasks(states string) int {
	w.Helper()
	return strings.Count(w.run(0, "tdf ls --all --json --state "+states), "\n")
}

const all = "open,running,executed,succeeded,failed,timed_out,expired,archived"

// Of 13 steps, one fails, and all that do not need it run. The next call runs the rest. Ctrl-C leaves nothing running.
func TestUnderSnakemake(t *testing.T) {
	w := newToolWorld(t, "Snakemake", "snakemake", "", "Snakefile")
	w.write("broken", "")
	w.run(1, w.lines)
	expect.Equal(t, w.read("stat.txt"), "80\n")
	expect.Equal(t, w.read("plot.txt")+w.read("report.txt"), "")
	expect.Equal(t, w.tasks(all), 11)
	w.remove("broken")
	w.run(0, w.lines)
	expect.Equal(t, w.read("report.txt"), "16 rows\n80\n")
	expect.Equal(t, w.tasks(all), 13, "plot and report")
	w.run(0, w.lines)
	expect.Equal(t, w.tasks(all), 13, "nothing is missing")

	w.remove("report.txt")
	w.remove("pid")
	w.write("wait", "")
	p := w.begin(w.lines)
	eventually(t, "report runs", func() bool { return strings.HasSuffix(w.read("pid"), "\n") })
	p.interrupt()
	pid := expect.Result(strconv.Atoi(strings.TrimSpace(w.read("pid")))).Value(t)
	expect.Equal(t, syscall.Kill(pid, 0), error(syscall.ESRCH), "the program of report")
	expect.Equal(t, w.tasks("open,running"), 0)
	w.remove("wait")
	w.run(0, w.lines)
	expect.Equal(t, w.read("report.txt"), "16 rows\n80\n")
}

// After Ctrl-C, no program runs any more, so the next call writes no file that another process writes.
func TestUnderMake(t *testing.T) {
	w := newToolWorld(t, "make", "make", "", "Makefile", "step.sh")
	starts := func(want int) bool {
		n := 0
		for _, name := range []string{"a", "b", "c", "d"} {
			n += strings.Count(w.read(name+".out.starts"), "\n")
		}
		return n == want
	}
	p := w.begin(w.lines)
	eventually(t, "all steps run", func() bool { return starts(4) })
	p.interrupt()
	for _, name := range []string{"a", "b", "c", "d"} {
		w.run(0, "flock -n "+name+".out.lock true")
		expect.Equal(t, w.read(name+".out"), "")
	}
	w.write("go", "")
	w.run(0, w.lines)
	expect.True(t, starts(8), "each step has run again")
	expect.Equal(t, w.read("merged"), "hello a\nhello b\nhello c\nhello d\n")
	before := w.tasks(all)
	expect.Contains(t, w.run(0, w.lines), "Nothing to be done for 'all'")
	expect.Equal(t, w.tasks(all), before)
	bad := w.begin(w.lines + " bad")
	bad.exits(2, "make: *** [Makefile:13: bad] Error 3")
	expect.Contains(t, bad.stderr.String(), "oops\n")
}

// The jobs of batchtools run as jobs of a Slurm, also as an array. One that fails is found, and others are killed.
func TestUnderR(t *testing.T) {
	w := newToolWorld(t, "R", "Rscript", "squares.R")
	w.write("squares.R", w.read("squares.R")+`
functions <- registry$cluster.functions
registry <- makeRegistry("other")
registry$cluster.functions <- functions
batchMap(function(x) if (x > 1) Sys.sleep(6000) else stop("no one"), 1:3)
submitJobs(data.table::data.table(job.id = 1:3, chunk = 1),
  resources = list(walltime = 3600, ncpus = 1, memory = 200, chunks.as.arrayjobs = TRUE))
while (nrow(findErrors()) < 1 || nrow(findRunning(2:3)) < 2) Sys.sleep(0.1)
print(getErrorMessages()$message)
killJobs(2:3)
`)
	out := w.run(0, w.lines)
	expect.Contains(t, out, "[1]  1  4  9 16 25\n")
	expect.Contains(t, out, "no one")
	expect.Equal(t, w.tasks("open,running"), 0)
}

// Two workers of Dask are tasks, which compute and are cancelled.
func TestUnderDask(t *testing.T) {
	w := newToolWorld(t, "Dask", "dask", "squares.py")
	out := w.run(0, w.lines)
	expect.Contains(t, out, "332833500\n")
	expect.Equal(t, w.tasks("expired"), 2)
	expect.Equal(t, w.tasks("open,running"), 0)
}

// In place of Nextflow, a script makes the calls of its executor. With a real Slurm, it is a part of
// TestCommandsOfSlurm.
func TestUnderNextflow(t *testing.T) {
	w := newToolWorld(t, "Nextflow", "", "")
	script := string(expect.Result(os.ReadFile("testdata/slurm/nextflow.sh")).Value(t))
	w.write("nextflow", "#!/bin/sh\n"+script)
	out := w.run(0, w.lines)
	ids := strings.Fields(w.read("ids"))
	expect.MustLen(t, ids, 5)
	want := ""
	for i, state := range []string{" CD", " F", " CD", " CA", "_0 CD", "_1 CD"} {
		want += fmt.Sprintf("%s%s\n", ids[min(i, 4)], state)
	}
	expect.Contains(t, out, want)
}
