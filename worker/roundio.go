package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/record"
	"github.com/tdf-framework/tdf/internal/worker/rounddir"
	"github.com/tdf-framework/tdf/internal/worker/safepath"
	"github.com/tdf-framework/tdf/internal/worker/secrets"
	"github.com/tdf-framework/tdf/redisstate"
)

// A roundIO holds the files through which a round and its worker exchange data.
type roundIO struct {
	secrets *secrets.Secrets
	record  *record.Record // the output files
	e       *execution
	before  rounddir.Before
	dir     *rounddir.Dir // the round's directory, in memory until the round needs one on disk
	making  sync.Mutex    // held while the directory is made, and while files are written
	ended   bool          // the round has ended, so it gets no directory any more
	tail    *task.Tail    // the end of the output if Redis has not accepted it yet, else nil

	keepTail bool // the round is released: Redis keeps only the tail of its output
}

// openIO makes the round's files, and returns the data of earlier rounds. Most of its errors are [Unfit].
func (e *execution) openIO(ctx context.Context, r *Round) (*roundIO, rounddir.Before, error) {
	x := &roundIO{e: e}
	var before rounddir.Before
	var err error
	if x.secrets, err = e.readEnvFile(r.ProgramSHA256 != ""); err != nil {
		return nil, before, Unfit(fmt.Errorf("[worker] env_file: %w", err))
	}
	if before, err = e.earlier(ctx); err != nil {
		return nil, before, err
	}
	x.record, err = e.openRecord(x.secrets != nil)
	if err != nil {
		return nil, before, Unfit(err)
	}
	e.record, e.secrets, x.before = x.record, x.secrets, before
	x.dir = rounddir.InMemory(before, e.s.roundLimits(), x.secrets)
	if e.s.inProcess() {
		return x, before, nil
	}
	if _, err = x.directory(); err != nil {
		x.record.Close()
		return nil, before, err
	}
	return x, before, nil
}

// directory returns the path of the round's directory. The first call makes the directory. Its errors are [Unfit],
// except those of reading the dependencies.
func (x *roundIO) directory() (string, error) {
	x.making.Lock()
	defer x.making.Unlock()
	e := x.e
	inUse, err := x.inUse()
	if err != nil {
		return "", err
	}
	if inUse.OnDisk() {
		return inUse.Path(), nil
	}
	dir, err := e.s.takeDir(e.slot, x.before, x.secrets) // without the lock e.mu, because it may read many dependencies
	if unread := new(unreadError); errors.As(err, unread) {
		return "", unread.error
	}
	if err != nil {
		return "", Unfit(fmt.Errorf("the round's directory: %w", err))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if x.ended {
		return "", errors.Join(errRoundEnded, dir.Remove())
	}
	if err := inUse.MoveTo(dir); err != nil {
		return "", errors.Join(Unfit(fmt.Errorf("the round's directory: %w", err)), dir.Remove())
	}
	x.dir = dir
	return dir.Path(), nil
}

// write writes files of the round, unless the round has ended.
func (x *roundIO) write(do func(d *rounddir.Dir) error) error {
	x.making.Lock()
	defer x.making.Unlock()
	inUse, err := x.inUse()
	if err != nil {
		return err
	}
	return do(inUse)
}

// An unreadError means that the dependencies of a task could not be read.
type unreadError struct{ error }

func (e *execution) writeDependencies(ctx context.Context, to io.Writer) error {
	unread, err := e.s.broker.WriteDependencies(ctx, e.task, to)
	if unread != nil {
		return unreadError{unread}
	}
	return err
}

var errRoundEnded = errors.New("the round has ended")

// inUse returns the round's present directory, in memory or on disk.
func (x *roundIO) inUse() (*rounddir.Dir, error) {
	x.e.mu.Lock()
	defer x.e.mu.Unlock()
	if x.ended {
		return nil, errRoundEnded
	}
	return x.dir, nil
}

// endDir makes sure that a goroutine that a handler left behind makes no directory.
func (e *execution) endDir(x *roundIO) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x.ended = true
}

// readEnvFile returns the program's secrets, or nil if there is no file. The program's user must not choose which file
// the worker reads, so readEnvFile follows no link of that user (docs/programs.md, "Secrets").
func (e *execution) readEnvFile(fetched bool) (*secrets.Secrets, error) {
	if e.s.cfg.EnvFile == "" {
		return nil, nil
	}
	base, below := splitName(e.s.cfg.Directory, e.s.cfg.EnvFile)
	f, err := safepath.OpenFile(base, e.fill(below))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := secrets.Read(f)
	// A task names its program and its source as it likes, so the name alone is no reason to give it the secrets.
	isCommand := strings.HasPrefix(e.task.Source, task.SchemeExec+":")
	byName := strings.Contains(e.s.cfg.EnvFile, "$program") && (fetched || isCommand)
	if err == nil && (byName || len(s.Sources()) > 0) && !slices.Contains(s.Sources(), e.task.Source) {
		e.log.Info("the program gets no secrets: env_file names other sources, or none (TDF_SOURCE)")
		return nil, nil
	}
	return s, err
}

func (e *execution) close(x *roundIO) {
	x.record.Close()
	if x.dir.OnDisk() && !e.s.putDir(x.dir) {
		e.dir = x.dir
	}
}

// earlier returns the data that the task's earlier rounds, and the tasks that it waited for, left for this round.
func (e *execution) earlier(ctx context.Context) (before rounddir.Before, err error) {
	before.Input = e.data
	if e.task.Links > 0 {
		before.After = func(w io.Writer) error { return e.writeDependencies(ctx, w) }
	}
	if e.task.Round == 0 {
		return before, nil
	}
	checkpoint, lastError, err := e.s.broker.Earlier(ctx, e.task)
	before.Checkpoint, before.LastError = []byte(checkpoint), lastError
	return before, err
}

// liveReport returns a report of the data that Redis has not accepted yet. The caller must call accepted when Redis has
// accepted the report. more says that there is too much data for one report.
//
// final says that the program has ended. The report then has no tail, because the output contains it. A released round
// stores no output, so its report still has the tail.
func (e *execution) liveReport(x *roundIO, final bool) (r redisstate.LiveReport, accepted func(), more bool) {
	news := x.dir.News(final)
	for _, problem := range news.Problems {
		e.log.Warn("a file in the round's directory is ignored", "problem", problem)
	}
	if news.HasProgress {
		r.Progress = &news.Progress
	}
	if news.Checkpoint != nil {
		checkpoint := string(news.Checkpoint)
		r.Checkpoint = &checkpoint
	}
	r.Updates, r.FirstUpdate = news.Updates, news.FirstUpdate
	if !final || x.keepTail {
		if tail, changed := x.record.Tail(x.secrets); changed {
			x.tail = &tail
		}
		r.Tail, r.Silent = x.tail, task.For(x.record.Silent())
	}
	return r, func() { e.accepted(x, news, r) }, news.More
}

// accepted records that Redis has accepted a report, so that its data is not reported again.
func (e *execution) accepted(x *roundIO, news rounddir.Report, r redisstate.LiveReport) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x.dir.Accepted(news)
	if x.tail == r.Tail {
		x.tail = nil
	}
}
