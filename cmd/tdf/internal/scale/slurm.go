package scale

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
)

// A slurmError is the failure of a command of Slurm. tdf scale goes on after it.
type slurmError struct{ error }

func (e slurmError) Unwrap() error { return e.error }

// A slurm submits and finds the jobs of one call of tdf scale.
type slurm struct {
	a       *cli.App
	name    string   // of all jobs; no other call of tdf scale uses it
	options []string // of sbatch, as the user gave them
	script  string   // path
	args    []string // of the script
	worker  string   // program
}

// jobName returns the name of the jobs for a namespace, queues and tags. It ends in a hash, so that different ones have
// different names.
func jobName(namespace, queues, tags string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", namespace, queues, tags))
	label := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, namespace+"-"+queues)
	return fmt.Sprintf("tdf-%s-%x", label[:min(len(label), longestLabel)], sum[:4])
}

const longestLabel = 60

// sbatch returns the arguments of sbatch. The name comes last, so that no option of the user replaces it.
func (s *slurm) sbatch() []string {
	args := append([]string{"--parsable"}, s.options...)
	return append(append(args, "--job-name="+s.name, s.script), s.args...)
}

// submit submits a job and returns its id.
func (s *slurm) submit(ctx context.Context) (id string, err error) {
	out, err := s.run(ctx, "sbatch", s.sbatch()...)
	id, _, _ = strings.Cut(out, ";") // the name of the cluster may follow
	return id, err
}

// jobs returns the ids of the jobs that have not ended, also those of an earlier call of tdf scale.
func (s *slurm) jobs(ctx context.Context) ([]string, error) {
	out, err := s.run(ctx, "squeue", "--noheader", "--array", fmt.Sprintf("--user=%d", os.Getuid()), "--name="+s.name,
		"--format=%A")
	return strings.Fields(out), err
}

// A fate is how a job has ended.
type fate struct {
	cancelled bool
	text      string // state and exit status, and the file with the output; "" if Slurm has forgotten the job
}

func (s *slurm) fate(ctx context.Context, id string) fate {
	out, err := s.run(ctx, "scontrol", "--oneliner", "show", "job", id)
	if err != nil {
		return fate{}
	}
	values := map[string]string{}
	for _, field := range strings.Fields(out) {
		name, value, _ := strings.Cut(field, "=")
		values[name] = value
	}
	return fate{
		cancelled: values["JobState"] == "CANCELLED",
		text:      fmt.Sprintf("%s, exit status %s, see %s", values["JobState"], values["ExitCode"], values["StdOut"]),
	}
}

// run runs a command of Slurm and returns its stdout without blanks around it. An error contains its stderr.
func (s *slurm) run(ctx context.Context, name string, args ...string) (string, error) {
	path, err := lookPath(name, s.a.Getenv("PATH"))
	if err != nil {
		return "", err
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.a.Dir, &stdout, &stderr
	for _, variable := range s.a.Env {
		if !strings.HasPrefix(variable, "SBATCH_") { // such as SBATCH_ARRAY_INX, with which a call submits several jobs
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "TDF_WORKER="+s.worker)
	err = cmd.Run()
	if err != nil {
		return "", slurmError{fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(stderr.String()))}
	}
	return strings.TrimSpace(stdout.String()), nil
}

// lookPath finds a command in the directories of a PATH, which need not be that of this process.
func lookPath(name, path string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		found, err := exec.LookPath(filepath.Join(dir, name))
		if err == nil {
			return found, nil
		}
	}
	return "", errors.New(name + " is not in $PATH: run tdf scale slurm on a login node of the cluster")
}

// refusedOptions are options of sbatch with which tdf scale could not count its jobs.
var refusedOptions = []string{"--array", "--clusters", "--job-name", "--wrap", "-a", "-J", "-M"}

// checkOptions returns an error if tdf scale could not count the jobs that sbatch makes with these options.
func checkOptions(options []string) error {
	for _, option := range options {
		for _, refused := range refusedOptions {
			long := strings.HasPrefix(refused, "--")
			name, _, _ := strings.Cut(option, "=")
			if long && name == refused || !long && strings.HasPrefix(option, refused) && !strings.HasPrefix(option, "--") {
				return cli.Usagef("option %s of sbatch: tdf scale counts its jobs by name, one worker each; leave it out", refused)
			}
		}
	}
	return nil
}
