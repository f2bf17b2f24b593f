package worker

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tdf-framework/tdf/fetch"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/worker/process"
	"github.com/tdf-framework/tdf/internal/worker/rounddir"
	"github.com/tdf-framework/tdf/internal/worker/safepath"
)

// A script is the preparer that fetches programs, and runs their run.sh in processes of their own
// (docs/programs.md, "How a program is run").
type script struct {
	w       *Worker
	fetcher *fetch.Fetcher
	host    *process.Host
}

// prepareHost prepares this host for the rounds of all namespaces. closeHost undoes that.
func (w *Worker) prepareHost() (closeHost func(), err error) {
	for _, one := range w.all {
		if err := one.makeDirectory(); err != nil {
			return nil, err
		}
		one.preparer = w.inProcessPreparer()
	}
	if w.inProcess() {
		return func() {}, nil
	}
	closeOnExec()
	last := w.all[len(w.all)-1]
	host, err := process.New(process.Config{
		Name: w.name, Memory: w.cfg.Memory, User: w.cfg.User, Slots: last.first + last.slots(),
		Sole: w.sole, Log: w.options.log, LingerGrace: func() <-chan time.Time { return w.after(w.cfg.KillGrace) },
	})
	if wrong := new(*process.ConfigError); errors.As(err, wrong) {
		return nil, wrongKey((*wrong).Key, err.Error(), err)
	}
	if err != nil {
		return nil, err
	}
	w.processes = host
	leave := func() error {
		for _, one := range w.all {
			if one.slotDirs != nil {
				one.slotDirs.close()
			}
			one.preparer, one.slotDirs = nil, nil
		}
		w.processes = nil
		return host.Close()
	}
	for _, one := range w.all {
		if err := one.useHost(host); err != nil {
			return nil, errors.Join(err, leave())
		}
	}
	reached, missing := host.Isolation()
	w.options.log.Info("isolation", "reached", strings.Join(reached, ", "), "missing", missing)
	w.checkTemporary()
	return func() { _ = leave() }, nil // best effort: the next start removes what is left
}

// useHost makes the worker run programs on the process's host.
func (w *Worker) useHost(host *process.Host) error {
	if host.OtherUser() {
		if err := w.guardDirectory(); err != nil {
			return err
		}
	}
	s := &script{w, w.newFetcher(), host}
	s.fetcher.Setup = s.setup
	w.preparer, w.slotDirs = s, newSlotDirs(w)
	return nil
}

// makeDirectory makes the working directory of a namespace, and the worker's own directory beside the programs. A full
// disk is no error, since the disk may have room again later.
func (w *Worker) makeDirectory() error {
	dir := w.cfg.Directory
	if !w.inProcess() {
		dir = filepath.Join(dir, ownDir)
	}
	err := os.MkdirAll(dir, 0o777)
	if err == nil || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return nil
	}
	return wrongKey("directory", err.Error()+"; expected a directory that this user can write to", err)
}

// guardDirectory returns an error if another user controls the working directory: that user could replace the
// worker's directories. It is called only if programs run as another user.
func (w *Worker) guardDirectory() error {
	err := w.checkDirectories()
	if err == nil || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return nil
	}
	return wrongKey("directory", err.Error()+", where programs run as another user", err)
}

func (w *Worker) checkDirectories() error {
	rounds, err := safepath.Open(w.cfg.Directory, roundsDir, true)
	if err != nil {
		return err
	}
	rounds.Close()
	dirs := []string{w.cfg.Directory, filepath.Join(w.cfg.Directory, ownDir), w.roundsOf(w.name), w.rounds()}
	if w.part != "" {
		dirs = append(dirs, filepath.Dir(w.cfg.Directory))
	}
	for _, dir := range dirs {
		if err := safepath.Check(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// A launch is the Runner of one round. It runs ./run.sh in dir, or a command.
type launch struct {
	*script
	dir     string // "" for the round's own directory
	command bool
}

// Run runs the program until it ends. If ctx ends first, Run ends the program, and the error says why.
func (l launch) Run(ctx context.Context, r *Round) (Ended, error) {
	dir, err := r.Dir()
	if err != nil {
		return Ended{}, err
	}
	start := l.start
	if l.command {
		l.dir, start = cmp.Or(l.dir, filepath.Join(dir, rounddir.ScratchDir)), l.startCommand
	}
	own, err := l.copyOwn(ctx, r, dir)
	if err != nil {
		return Ended{}, err
	}
	given, err := l.attach(ctx, r)
	if err != nil {
		return Ended{}, err
	}
	p, err := start(ctx, l.dir, process.Command{
		Slot: r.Slot, Args: r.Args, Env: append(r.execution.environment(dir), l.host.UserEnv(r.Slot)...),
		Stdout: r.Stdout.(*os.File), Stderr: r.Stderr.(*os.File), Mark: dirVariable + dir,
		Cores: r.execution.share.Cores(), Memory: r.execution.share.Amounts.Of(class.Memory),
	})
	if err != nil {
		return notStarted(err)
	}
	cause := l.await(ctx, r, p)
	cost := p.Ended()
	if cost.Lingered > 0 && cause == nil {
		r.Log.Debug("ended processes that run.sh had left running", "processes", cost.Lingered)
	}
	ended := Ended{
		Exit: cost.Exit, Reason: cost.OutOfMemory, Elapsed: cost.Ran, CPU: cost.CPU, MaxRSS: cost.MaxRSS,
	}
	if own != nil && cause == nil {
		ended.unchanged, cause = own.Unchanged()
	}
	ended.unchanged = given.addUnchanged(l.dir, ended.unchanged)
	return ended, cause
}

// copyOwn copies the program into the round's own directory if the round needs one. Then the program runs in the copy.
// copyOwn returns nil if there is none.
func (l *launch) copyOwn(ctx context.Context, r *Round, dir string) (*fetch.Copy, error) {
	if l.command || !needsOwnDir(r.execution.task) {
		return nil, nil
	}
	from := l.dir
	l.dir = filepath.Join(dir, rounddir.ScratchDir)
	fetcher := l.fetcherOf(r.Slot)
	own, err := fetcher.CopyInto(ctx, r.Program, r.Source, from, l.dir, fetch.CopyOptions{
		MaxBytes: l.w.cfg.MaxCopyBytes,
	})
	return own, unfitFetch(err)
}

// await returns when the program and all processes that it started have ended. The error says why the worker ended the
// program. It is nil if the program ended by itself: its result then counts, even if ctx ends before its other
// processes do.
func (l launch) await(ctx context.Context, r *Round, p *process.Process) error {
	select {
	case <-p.Exited():
	case <-ctx.Done():
	}
	var cause error
	select {
	case <-p.Exited():
		r.execution.holdEnd(l.w.cfg.KillGrace)
	default:
		cause = context.Cause(ctx)
		r.Log.Debug("ending the program", "reason", cause)
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.End(l.w.after(l.w.cfg.KillGrace), l.w.noGrace.Done())
	}
	if end := context.Cause(ctx); isLost(end) {
		return end
	}
	return cause
}

// closeOnExec marks the descriptors that this process inherited, such as a lock or a socket. Programs then do not
// inherit them. Go marks the files that it opens itself.
func closeOnExec() {
	entries, _ := os.ReadDir("/dev/fd")
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
