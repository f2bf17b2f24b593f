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

// program returns the task's program, fetched if it was not there. Fetching has a limit of its own:
// the task's timeout begins to count when the program is there (docs/lifecycle.md, "What the server decides").
// An error is the round's result, or says why it was cut short.
func (e *execution) program(ctx context.Context) (fetch.Program, error) {
	p, ready, err := e.w.fetcher.Ready(e.task.Program, e.task.Source)
	if ready || err != nil {
		return p, err
	}
	r := e.renewal()
	r.Limit = tdf.For(e.w.cfg.FetchTimeout) + e.task.Timeout
	if _, err := e.renew(ctx, r); err != nil {
		return p, err
	}
	if p, err = e.w.fetcher.Fetch(ctx, e.task.Program, e.task.Source); err != nil {
		return p, err
	}
	return p, e.begin(ctx)
}

// begin lets the timeout count from now.
func (e *execution) begin(ctx context.Context) error {
	r := e.renewal()
	r.Begun, r.Limit = true, e.task.Timeout
	now, err := e.renew(ctx, r)
	if err != nil {
		return fmt.Errorf("the program was fetched, but not begun: %w", err)
	}
	e.clock.Store(&reading{now, time.Now()})
	return nil
}
