package worker

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/fetch"
	"github.com/tdf-framework/tdf/internal/task"
)

func (w *Worker) newFetcher() *fetch.Fetcher {
	return &fetch.Fetcher{
		Dir: w.cfg.Directory, Outputs: w.outputsBelow(), Timeout: w.cfg.FetchTimeout, Compressions: w.archives,
		Log: w.log, Cache: &fetch.Cache{},
		Limits: fetch.Limits{Bytes: w.cfg.MaxProgramBytes},
	}
}

// Prepare fetches the task's program, unless the program is already on the disk. A fetch may take half an hour.
// The task's timeout begins to count after the fetch (docs/lifecycle.md, "What the server decides").
func (s *script) Prepare(ctx context.Context, r *Round) (Runner, error) {
	dir, isCommand := strings.CutPrefix(r.Source, task.SchemeExec+":")
	if isCommand {
		return launch{script: s, dir: dir, command: true}, nil
	}
	fetcher := s.fetcherOf(r.Slot)
	fetcher.Blob = func(ctx context.Context, sha256 string) (io.ReadCloser, error) {
		return r.execution.s.broker.Archive(ctx, r.execution.task, sha256)
	}
	p, ready, err := fetcher.Ready(r.Program, r.Source)
	if !ready && err == nil {
		if err := r.holdTimeout(ctx, s.w.cfg.FetchTimeout); err != nil {
			return nil, err
		}
		defer s.host.Hold()()
		fetcher.Log = r.execution.s.log.With("task", r.ID, "round", r.Number) // the fetcher adds the program
		p, err = fetcher.Fetch(ctx, r.Program, r.Source)
	}
	r.ProgramSHA256 = p.SHA256
	if err != nil {
		return nil, unfitFetch(err)
	}
	dir, err = s.w.slotDirs.directory(ctx, r, &fetcher, p)
	return launch{script: s, dir: dir}, unfitFetch(err)
}

// fetcherOf returns the fetcher for the rounds of a slot.
func (s *script) fetcherOf(slot int) fetch.Fetcher {
	fetcher := *s.fetcher
	if c := s.host.Credential(slot); c != nil {
		fetcher.User = &fetch.User{Credential: *c, Env: s.host.UserEnv(slot)}
	}
	return fetcher
}

// programName returns the name of the program's directory.
func (e *execution) programName() string {
	if name := e.programDir.Load(); name != nil {
		return *name
	}
	return e.task.Program
}

// begin starts the task's timeout, which holdTimeout had stopped.
func (e *execution) begin(ctx context.Context) error {
	r := e.renewal()
	r.Begun, r.Limit = true, e.task.Timeout
	now, err := e.renewOne(ctx, r)
	if err != nil {
		return fmt.Errorf("start the fetched program: %w", err)
	}
	e.clock.Store(&reading{now, time.Now()})
	return nil
}
