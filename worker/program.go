package worker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/fetch"
)

func (w *Worker) newFetcher() *fetch.Fetcher {
	l := w.cfg.Limits
	return &fetch.Fetcher{
		Dir: w.cfg.Directory, Timeout: w.cfg.FetchTimeout, Log: w.log, Blob: w.blob,
		Limits: fetch.Limits{Bytes: l.Bytes, Entries: l.Entries, Depth: l.Depth, Ratio: float64(l.Ratio)},
	}
}

// blob opens an archive that is stored in the namespace.
func (w *Worker) blob(ctx context.Context, sha256 string) (io.ReadCloser, error) {
	archive, err := w.store.Program(ctx, sha256)
	switch {
	case err != nil:
		return nil, err
	case archive == nil:
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(archive)), nil
}

// prepare sees to it that the task's program is there. Fetching has a limit of its own: the task's
// timeout begins to count when the program is there (docs/lifecycle.md, "What the server decides").
// An error is the round's result, or says why it was cut short.
func (s *script) prepare(ctx context.Context, e *execution) error {
	fetcher := *s.fetcher
	fetcher.User, _, _ = s.host.Credentials(e.slot)
	p, ready, err := fetcher.Ready(e.task.Program, e.task.Source)
	if ready || err != nil {
		e.program = p
		return unfitFetch(err)
	}
	r := e.renewal()
	r.Limit = tdf.For(e.s.cfg.FetchTimeout) + e.task.Timeout
	if _, err := e.renewOne(ctx, r); err != nil {
		return err
	}
	defer s.host.Hold()()
	fetcher.Log = e.s.log.With("task", e.task.ID, "round", e.task.Round) // it says itself which program
	if e.program, err = fetcher.Fetch(ctx, e.task.Program, e.task.Source); err != nil {
		return unfitFetch(err)
	}
	return e.begin(ctx)
}

// begin lets the timeout count from now.
func (e *execution) begin(ctx context.Context) error {
	r := e.renewal()
	r.Begun, r.Limit = true, e.task.Timeout
	now, err := e.renewOne(ctx, r)
	if err != nil {
		return fmt.Errorf("the program was fetched, but not begun: %w", err)
	}
	e.clock.Store(&reading{now, time.Now()})
	return nil
}
