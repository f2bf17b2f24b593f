package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/worker/record"
	"github.com/tdf-framework/tdf/worker/retention"
	"github.com/tdf-framework/tdf/worker/rounddir"
	"github.com/tdf-framework/tdf/worker/safepath"
	"github.com/tdf-framework/tdf/worker/secrets"
)

// A desk is where a round and its worker exchange what they have for each other.
type desk struct {
	secrets *secrets.Secrets
	record  *record.Record // what it prints
	dir     *rounddir.Dir  // what it reports
	tail    *string        // what it printed last, if that was not yet accepted
	pid     int            // of run.sh, if that was not yet accepted; else 0
}

// openDesk: what goes wrong here is this host's fault.
func (e *execution) openDesk(ctx context.Context) (*desk, error) {
	d := &desk{}
	var err error
	if d.secrets, err = e.readEnvFile(); err != nil {
		return nil, unfit(fmt.Errorf("[worker] env_file: %w", err))
	}
	before, err := e.earlier(ctx)
	if err != nil {
		return nil, err
	}
	d.record, err = e.openRecord(d.secrets != nil)
	if err != nil {
		return nil, unfit(err)
	}
	d.dir, err = e.s.takeDir(e.slot, before, d.secrets)
	if err != nil {
		d.record.Close()
		return nil, unfit(fmt.Errorf("the round's directory: %w", err))
	}
	return d, nil
}

// readEnvFile returns the program's secrets; nil: there is no such file. A link of the program's user does not make the
// worker read another file (docs/programs.md, "Secrets").
func (e *execution) readEnvFile() (*secrets.Secrets, error) {
	if e.s.cfg.EnvFile == "" {
		return nil, nil
	}
	base, below := retention.Split(e.s.cfg.Directory, e.s.cfg.EnvFile)
	f, err := safepath.OpenFile(base, e.fill(below))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return secrets.Read(f)
}

func (e *execution) close(d *desk) {
	d.record.Close()
	e.s.putDir(d.dir)
}

// earlier returns what the task's earlier rounds left for this one.
func (e *execution) earlier(ctx context.Context) (rounddir.Before, error) {
	if e.task.Round == 0 {
		return rounddir.Before{}, nil
	}
	last := e.task.Round - 1
	stored, err := e.s.store.ReadOne(ctx, e.task.ID, redisstate.Want{Texts: redisstate.SameTexts(
		redisstate.TextsOf{Round: redisstate.OfTask, Texts: tdf.TextCheckpoint}, redisstate.TextsOf{Round: last, Texts: tdf.TextError},
	)})
	if err != nil {
		return rounddir.Before{}, err
	}
	return rounddir.Before{Checkpoint: []byte(stored.Task.Checkpoint), LastError: stored.Task.Rounds.At(last).Error}, nil
}

// news is what the round has to report since the last time that it was accepted. The last time the
// tail is left out, unless there will be no output.
func (e *execution) news(d *desk, last bool) (r redisstate.LiveReport, accepted func(), more bool) {
	news := d.dir.News(last)
	for _, problem := range news.Problems {
		e.log.Warn("the round's directory", "problem", problem)
	}
	if news.HasProgress {
		r.Progress = &news.Progress
	}
	if news.Checkpoint != nil {
		checkpoint := string(news.Checkpoint)
		r.Checkpoint = &checkpoint
	}
	r.Updates, r.FirstUpdate = news.Updates, news.FirstUpdate
	if tail, changed := d.record.Tail(d.secrets); changed {
		d.tail = &tail
	}
	if !last || isGivenBack(context.Cause(e.ctx)) {
		r.Tail, r.Silent = d.tail, tdf.For(d.record.Silent())
	}
	if !last {
		r.PID = d.pid
	}
	return r, func() { e.accepted(d, news, r) }, news.More
}

// started: the program runs, and has a number.
func (e *execution) started(pid int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.desk != nil {
		e.desk.pid = pid
	}
}

// accepted: what was reported does not come again.
func (e *execution) accepted(d *desk, news rounddir.Report, r redisstate.LiveReport) {
	d.dir.Accepted(news)
	e.mu.Lock()
	defer e.mu.Unlock()
	if d.tail == r.Tail {
		d.tail = nil
	}
	if d.pid == r.PID {
		d.pid = 0
	}
}
