package worker

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/fetch"
	"github.com/tdf-framework/tdf/worker/process"
	"github.com/tdf-framework/tdf/worker/safepath"
)

// A script is the Runner that fetches programs, and runs their run.sh in processes of their own
// (docs/programs.md, "How a program is run").
type script struct {
	w       *Worker
	fetcher *fetch.Fetcher
	host    *process.Host
}

// setUp makes ready what runs the rounds. What it returns undoes that.
func (w *Worker) setUp() (dismantle func(), err error) {
	switch {
	case w.Runner == nil:
	case len(w.cfg.Require) > 0:
		return nil, wrongKey("require", "rounds are run by a Runner in this process, without any isolation; expected nothing", nil)
	default:
		return func() {}, nil
	}
	if err := w.ownDirectory(); err != nil {
		return nil, err
	}
	host, err := process.New(process.Config{
		Name: w.name, Limits: limitsOf(w.cfg.Programs), User: w.cfg.User, Slots: w.slots(), Require: w.cfg.Require, Sole: w.Sole,
		Log: w.log, LingerGrace: func() <-chan time.Time { return w.after(w.cfg.KillGrace) },
	})
	if err != nil {
		return nil, isolationError(w.cfg, err)
	}
	if host.OtherUser() {
		if err := w.guardDirectory(); err != nil {
			return nil, errors.Join(err, host.Close())
		}
	}
	s := &script{w, w.newFetcher(), host}
	s.fetcher.Setup = s.setup
	s.fetcher.OtherUser = host.OtherUser()
	w.Runner = s
	w.tellIsolation(host)
	return func() {
		w.Runner = nil
		host.Close()
	}, nil
}

// ownDirectory sees whether the worker can write where its programs are to be. A full disk may get room again.
func (w *Worker) ownDirectory() error {
	err := os.MkdirAll(filepath.Join(w.cfg.Directory, ownDir), 0o777)
	if err == nil || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return nil
	}
	return wrongKey("directory", err.Error()+"; expected a directory that this user can write to", err)
}

// guardDirectory keeps the worker from working where another user could exchange its directories, once
// programs run as another user.
func (w *Worker) guardDirectory() error {
	rounds, err := safepath.Open(w.cfg.Directory, roundsDir, true)
	if err == nil {
		rounds.Close()
	}
	for _, dir := range []string{w.cfg.Directory, filepath.Join(w.cfg.Directory, ownDir), w.rounds()} {
		if wrong := safepath.Check(dir); err == nil && !errors.Is(wrong, fs.ErrNotExist) {
			err = wrong
		}
	}
	if err == nil || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return nil
	}
	return wrongKey("directory", err.Error()+", where programs run as another user", err)
}

// tellIsolation logs what programs are isolated by, and what was asked for and cannot be had.
func (w *Worker) tellIsolation(host *process.Host) {
	missing := host.Missing()
	var lacking []string
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		if missing[name] != process.NotSet {
			lacking = append(lacking, name+": "+missing[name])
		}
	}
	w.log.Info("isolation", "reached", strings.Join(host.Isolation(), ", "), "missing", strings.Join(lacking, "; "))
}

// isolationError names the key that asks for what cannot be had.
func isolationError(cfg config.Worker, err error) error {
	key := "require"
	if errors.As(err, new(*process.UserError)) {
		key = "user"
	}
	return wrongKey(key, err.Error(), err)
}

func limitsOf(c config.Programs) process.Limits {
	return process.Limits{
		Memory: c.Memory, FileSize: c.FileSize, CPU: time.Duration(c.CPUSeconds) * time.Second,
		OpenFiles: c.OpenFiles, Processes: c.Processes, Nice: c.Nice,
	}
}

// Run runs ./run.sh to its end, or to that of ctx: then the error says why.
func (s *script) Run(ctx context.Context, r *Round) (Ended, error) {
	e := r.execution
	ended := Ended{ProgramSHA256: e.program.SHA256}
	p, err := s.launch(ctx, e.program.Dir, process.Command{
		Slot: e.slot, Args: r.Args, Env: append(r.Env, s.host.UserEnv(e.slot)...), Stdout: r.Stdout, Stderr: r.Stderr, Mark: dirVariable + r.Dir,
	})
	if err != nil {
		return ended, err
	}
	e.started(p.PID())
	why := s.await(ctx, e, p)
	cost := p.Ended()
	ended.Exit, ended.Why = cost.Exit, cost.OutOfMemory
	ended.Seconds, ended.CPUSeconds, ended.MaxRSS = tdf.For(cost.Ran), tdf.For(cost.CPU), cost.MaxRSS
	if cost.Lingered > 0 && why == nil {
		e.log.Debug("ended what run.sh had left running", "processes", cost.Lingered)
	}
	return ended, why
}

// await returns when the program and all that it started have ended: nil when run.sh did so by
// itself, else why it was made to.
func (s *script) await(ctx context.Context, e *execution, p *process.Process) error {
	select {
	case <-p.Done():
		return nil
	case <-ctx.Done():
	}
	why := context.Cause(ctx)
	e.log.Debug("ending the program", "why", why)
	p.End(s.w.after(s.w.cfg.KillGrace), s.w.haste.Done())
	return why
}
