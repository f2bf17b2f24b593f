package cmd_test

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/slurmtest"
	"github.com/tdf-framework/tdf/redisstate/keys"
)

// bothSlurms starts a Slurm, and a TDF with tdf slurm-commands.
// It returns the environments in which each of them is used.
func bothSlurms(t testing.TB, concurrency int) (slurm, tdf []string) {
	t.Helper()
	addr := redistest.Start(t).Addr
	cluster := slurmtest.Start(t)
	_, port, err := net.SplitHostPort(addr)
	must(t, err)
	cfg := write(t, "[tdf]\nnamespace=N\n[redis]\nhost=127.0.0.1\nport=%s\n[worker]\nlease=5\n"+
		"resources=cpus=%d gpus=%d memory=1G\nconcurrency=%d\ndirectory=%s\n", port, slurmtest.CPUs, slurmtest.GPUs,
		concurrency, t.TempDir())
	must(t, redistest.Client(t, redis.Options{Addr: addr}).Set(t.Context(), keys.Of("N").TaskID(), 2_000_000, 0).Err()) // ids
	start(t, "tdf-server", "s", write(t, "[tdf]\nnamespace=N\n[redis]\nhost=127.0.0.1\nport=%s\n", port)).logs("msg=serving")
	start(t, "tdf-worker", "w", cfg).logs("msg=working")
	bin := t.TempDir()
	out, err := exec.Command(built(t, "tdf"), "--config", cfg, "slurm-commands", bin).CombinedOutput()
	expect.NoError(t, err, string(out))
	return cluster.Env(), append(environment(), "PATH="+bin+":"+os.Getenv("PATH"))
}

// BenchmarkArray submits an array of 1,000 trivial jobs to a Slurm, and to a TDF with as many slots. It reports the
// seconds from the call of sbatch to its end, to the first and the last start, and to the end of the last job.
func BenchmarkArray(b *testing.B) {
	slurm, tdf := bothSlurms(b, slurmtest.CPUs)
	for _, side := range []struct {
		name string
		env  []string
	}{{"Slurm", slurm}, {"TDF", tdf}} {
		b.Run(side.name, func(b *testing.B) {
			for b.Loop() {
				r := newSlurmRun(b, side.name, "", side.env)
				must(b, os.WriteFile(r.dir+"/job.sh", []byte("#!/bin/bash\necho $EPOCHREALTIME >>starts\n"), 0o755))
				began := time.Now()
				expect.Result(r.command("sbatch", "--array=1-1000", "--output=/dev/null", "job.sh")).OK(b, r.stderr)
				b.ReportMetric(time.Since(began).Seconds(), "s/sbatch")
				var starts []string
				eventually(b, "the last start", func() bool {
					text, _ := os.ReadFile(r.dir + "/starts")
					starts = slices.Sorted(strings.FieldsSeq(string(text)))
					return len(starts) == 1000
				})
				eventually(b, "the last end", func() bool {
					return expect.Result(r.command("squeue", "-h", "-o", "%i")).Value(b, r.stderr) == ""
				})
				b.ReportMetric(time.Since(began).Seconds(), "s/end")
				for unit, start := range map[string]string{"s/first": starts[0], "s/last": starts[999]} {
					at := expect.Result(strconv.ParseFloat(start, 64)).Value(b)
					b.ReportMetric(at-float64(began.UnixMicro())/1e6, unit)
				}
			}
		})
	}
}

// Each script in testdata/slurm submits jobs, and writes their ids into the file ids. In a Slurm and in a TDF with
// tdf slurm-commands, it prints the same, and its jobs have the same states, exit codes and files.
func TestCommandsOfSlurm(t *testing.T) {
	slurm, tdf := bothSlurms(t, 100)
	scripts := expect.Result(filepath.Glob("testdata/slurm/*.sh")).Value(t)
	expect.MustTrue(t, len(scripts) > 0, "there are scripts")
	type pair struct{ want, got *slurmRun }
	runs := map[string]pair{}
	var running sync.WaitGroup
	for _, script := range scripts {
		name := strings.TrimSuffix(filepath.Base(script), ".sh")
		text := string(expect.Result(os.ReadFile(script)).Value(t))
		p := pair{newSlurmRun(t, name, text, slurm), newSlurmRun(t, name, text, tdf)}
		runs[name] = p
		running.Go(p.got.run)
		running.Go(p.want.run)
	}
	running.Wait()
	oneStep := newSlurmRun(t, "one step", twoSteps, tdf)
	oneStep.run()
	expect.NoError(t, oneStep.err, oneStep.stderr)
	expect.Equal(t, oneStep.stdout, "1\nsrun: error: another step of the job runs: TDF runs one step of a job at a time\n")
	for name, p := range runs {
		t.Run(name, func(t *testing.T) {
			want := p.want.result(t)
			expect.Equal(t, cmp.Diff(want, p.got.result(t)), "")
		})
	}
}

// twoSteps starts a step while another one runs.
const twoSteps = `cat >job.sh <<'EOF'
#!/bin/sh
srun sh -c 'touch up; until [ -e go ]; do sleep 0.1; done' &
until [ -e up ]; do sleep 0.1; done
srun true 2>err; echo $?; cat err
touch go; wait
EOF
sbatch -W -Q -o out job.sh; cat out`

// A slurmRun is a script of testdata/slurm under one of the two.
type slurmRun struct {
	name, text, dir string
	env             []string
	stdout, stderr  string
	err             error
}

func newSlurmRun(t testing.TB, name, text string, env []string) *slurmRun {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	must(t, os.Mkdir(dir, 0o755))
	return &slurmRun{name: name, text: text, dir: dir, env: env}
}

func (r *slurmRun) command(name string, args ...string) (string, error) {
	cmd := exec.Command("/bin/sh", append([]string{"-c", `exec "$@"`, "sh", name}, args...)...) // which looks in its PATH
	var out, problems strings.Builder
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = r.dir, r.env, &out, &problems
	err := cmd.Run()
	r.stderr += problems.String()
	return out.String(), err
}

func (r *slurmRun) run() { r.stdout, r.err = r.command("/bin/sh", "-c", r.text) }

// result waits for the jobs, and returns what the script printed, how the jobs ended, and the files.
func (r *slurmRun) result(t *testing.T) string {
	t.Helper()
	expect.NoError(t, r.err, r.stderr)
	ids := strings.Fields(string(expect.Result(os.ReadFile(filepath.Join(r.dir, "ids"))).Value(t)))
	must(t, os.Remove(filepath.Join(r.dir, "ids")))
	eventually(t, "the end of the jobs", func() bool {
		out, err := r.command("squeue", "-h", "-j", strings.Join(ids, ","), "-o", "%i")
		expect.NoError(t, err, r.stderr)
		return out == ""
	})
	text := r.stdout
	for _, id := range ids {
		text += r.states(t, id)
	}
	text += r.files(t)
	for n, id := range ids {
		text = strings.ReplaceAll(text, id, fmt.Sprint("JOB", n+1))
	}
	return text
}

var fieldOfJob = regexp.MustCompile(`(ArrayTaskId|JobState|ExitCode)=(\S+)`)

// states returns the states and exit codes of a job.
func (r *slurmRun) states(t *testing.T, id string) string {
	t.Helper()
	out, err := r.command("scontrol", "-o", "show", "job", id)
	expect.NoError(t, err, r.stderr)
	var lines []string
	for line := range strings.Lines(out) {
		var fields []string
		for _, f := range fieldOfJob.FindAllStringSubmatch(line, -1) {
			fields = append(fields, f[0])
		}
		if len(fields) == 0 || strings.Contains(line, "ArrayTaskId") && strings.Contains(line, "JobState=CANCELLED") {
			continue // a line break in an argument; Slurm forgets elements that are cancelled before they start
		}
		lines = append(lines, id+" "+strings.Join(fields, " ")+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func (r *slurmRun) files(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	must(t, fs.WalkDir(os.DirFS(r.dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(r.dir, path))
		fmt.Fprintf(&text, "== %s\n%s\n", path, content)
		return err
	}))
	return text.String()
}
