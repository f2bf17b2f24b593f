package slurm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/manager"
)

// srun is the command srun. In a job, it runs a command in place of itself. Elsewhere, it submits the command as a job,
// and waits for it.
func srun(ctx context.Context, a *cli.App, args []string) error {
	if a.Getenv("SLURM_JOB_ID") != "" && a.Getenv("TDF_DIR") != "" {
		return step(a, args)
	}
	j := &job{a: a, step: true, script: "#!/bin/sh\nexec \"$@\"\n", command: "srun"}
	rest, err := parse(j.flags(), args)
	switch {
	case err != nil:
		return err
	case len(rest) == 0:
		return errNoCommand
	case j.array != nil || j.hold || j.parsable || j.wait || j.wrap != "":
		return errors.New("--array, --hold, --parsable, --wait and --wrap are options of sbatch")
	case j.errors != "" && j.output == "":
		return errors.New("--error without --output: name both files, or none")
	}
	j.args = rest
	if j.name == "" {
		j.name = filepath.Base(rest[0])
	}
	err = j.complete()
	if err != nil {
		return err
	}
	return a.WithManager(ctx, func(m *cli.Client) error { return j.runHere(ctx, m) })
}

var errNoCommand = errors.New("no command given to execute")

// runHere submits the job of srun, waits for it, and prints its output.
func (j *job) runHere(ctx context.Context, m *cli.Client) error {
	id, group, err := j.submit(ctx, m)
	if err != nil || j.testOnly {
		return err
	}
	ended := awaitGroup(ctx, m, group)
	if ctx.Err() != nil {
		_, err = m.Cancel(j.a.Unhurried(), manager.ByIDs(id)...)
		return errors.Join(ended, err)
	}
	t, err := m.Get(ctx, id)
	if err != nil {
		return err
	}
	if last := t.LastRun(); last != nil {
		_, err = io.WriteString(j.a.Stdout, last.Output)
		printed := last.Error[:min(int64(len(last.Error)), last.ErrorBytes)] // the worker has added the rest
		_, err2 := io.WriteString(j.a.Stderr, printed)
		if !last.OutputWhole() || !last.ErrorWhole() {
			err2 = errors.Join(err2, errors.New("only a part of the output has arrived: use --output"))
		}
		err = errors.Join(err, err2)
	}
	if err == nil && ended != nil {
		j.a.Say("srun: error: job %d: %s", id, newView(t).state())
	}
	return errors.Join(err, ended)
}

// step runs a step of a job, in the share of the job, whatever it asks for. Only one may run at a time: the lock ends
// with the processes of the command.
func step(a *cli.App, args []string) error {
	f := newFlags()
	for _, name := range []string{"nodes/N", "ntasks/n", "ntasks-per-node"} {
		long, short, _ := strings.Cut(name, "/")
		f.FuncP(long, short, "", one)
	}
	f.Func("mpi", "", only("none", "TDF starts no MPI programs"))
	dir := f.StringP("chdir", "D", "", "")
	without(f, "cpus-per-task/c mem mem-per-cpu gres gpus/G gpus-per-task time/t job-name/J cpu-bind",
		"exact overlap unbuffered/u quiet/Q")
	rest, err := parse(f, args)
	switch {
	case err != nil:
		return err
	case len(rest) == 0:
		return errNoCommand
	}
	lock, err := os.OpenFile(filepath.Join(a.Getenv("TDF_DIR"), "scratch", "slurm_step"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		return errors.New("another step of the job runs: TDF runs one step of a job at a time")
	}
	number, err := nextStep(lock)
	if err != nil {
		return err
	}
	path, err := exec.LookPath(rest[0])
	if err != nil {
		a.Say("srun: error: %v", err)
		return cli.ExitStatus(127)
	}
	if *dir != "" {
		err = syscall.Chdir(a.Path(*dir)) // the command replaces this process
		if err != nil {
			return err
		}
	}
	env := append(slices.Clip(a.Env), "SLURM_STEP_ID="+number, "SLURM_STEPID="+number, "SLURM_STEP_NUM_TASKS=1",
		"SLURM_STEP_NUM_NODES=1", "SLURM_NTASKS=1", "SLURM_NPROCS=1")
	_, err = syscall.Dup(int(lock.Fd())) // the command inherits it
	if err != nil {
		return err
	}
	return fmt.Errorf("execute %s: %w", path, syscall.Exec(path, rest, env))
}

// nextStep returns the number of the next step: the number of bytes in the file of the lock.
func nextStep(lock *os.File) (string, error) {
	info, err := lock.Stat()
	if err != nil {
		return "", err
	}
	_, err = lock.WriteAt([]byte{'.'}, info.Size())
	return fmt.Sprint(info.Size()), err
}
