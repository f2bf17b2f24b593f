package open

import (
	"context"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/sweep"
)

// A rowSource reads the rows of a sweep.
type rowSource struct {
	name string // name of the source, for errors
	// reads from the first row; nil if the command opens one task instead of a sweep
	rows  func() (iter.Seq2[sweep.Row, error], error)
	once  bool            // the rows can be read only once
	input *sweep.Template // nil if run.sh gets all parameters in their order
	close func()
}

// sweep returns the rows and the template that the flags describe.
func (o *opening) sweep(ctx context.Context) (*rowSource, error) {
	s := &rowSource{close: func() {}}
	var err error
	switch {
	case o.grid != "":
		err = o.fromGrid(s)
	case o.from != "":
		err = o.fromFile(ctx, s)
	default:
		return s, nil
	}
	if err == nil && o.changed("input") {
		if s.input, err = sweep.ParseTemplate(o.input); err != nil {
			err = cli.Usagef("--input: %v", err)
		}
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// maxTasks limits a grid. Without this limit, a mistyped number could fill the memory of this machine and of Redis. A
// task needs about 1 KiB in Redis, and about 100 bytes in the tally of tdf open.
const maxTasks = 10_000_000

func (o *opening) fromGrid(s *rowSource) error {
	g, err := sweep.ParseGrid(o.grid)
	if err != nil {
		return cli.Usagef("--grid: %v", err)
	}
	if n := g.Len(); n > maxTasks {
		return cli.Usagef("--grid: %d points are too many: want at most %d", n, maxTasks)
	}
	s.name = "--grid"
	s.rows = func() (iter.Seq2[sweep.Row, error], error) { return g.Rows(), nil }
	return nil
}

func (o *opening) fromFile(ctx context.Context, s *rowSource) error {
	read, err := o.reader()
	if err != nil {
		return err
	}
	if o.from == "-" {
		s.stream(ctx, "stdin", o.a.Stdin, read)
		return nil
	}
	f, err := o.a.OpenFile(ctx, o.from)
	if err != nil {
		return cli.Usagef("--from: %v", err)
	}
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		f.Close()
		return cli.Usagef("--from %s: not a readable file", o.from)
	}
	if !info.Mode().IsRegular() {
		s.stream(ctx, o.from, f, read)
		return nil
	}
	s.name, s.close = o.from, func() { f.Close() }
	s.rows = func() (iter.Seq2[sweep.Row, error], error) {
		_, err := f.Seek(0, io.SeekStart)
		return read(f), err
	}
	return nil
}

// stream makes the source read its rows from a pipe or terminal. These rows can be read only once.
func (s *rowSource) stream(ctx context.Context, name string, r io.Reader, read func(io.Reader) iter.Seq2[sweep.Row,
	error],
) {
	in := cli.Interruptible(ctx, r)
	s.name, s.once, s.close = name, true, func() { in.Close() }
	s.rows = func() (iter.Seq2[sweep.Row, error], error) { return read(in), nil }
}

// reader returns the parser for the format of the rows.
func (o *opening) reader() (func(io.Reader) iter.Seq2[sweep.Row, error], error) {
	format := o.format
	if format == "" {
		format = strings.TrimPrefix(filepath.Ext(o.from), ".")
	}
	switch strings.ToLower(format) {
	case "csv":
		return sweep.CSV, nil
	case "jsonl", "ndjson":
		return sweep.JSONL, nil
	}
	if o.format != "" {
		return nil, cli.Usagef("invalid value %q for --format: want csv or jsonl", o.format)
	}
	return nil, cli.Usagef("--from %s: unknown format; add --format csv or --format jsonl", o.from)
}

// candidates returns a candidate for each row.
func (s *rowSource) candidates(d tdf.Properties) iter.Seq2[sweep.Candidate, error] {
	return func(yield func(sweep.Candidate, error) bool) {
		if s.rows == nil {
			yield(sweep.Candidate{Task: d}, nil)
			return
		}
		if err := s.each(d, func(c sweep.Candidate) bool { return yield(c, nil) }); err != nil {
			yield(sweep.Candidate{}, fmt.Errorf("%s: %w", s.name, err))
		}
	}
}

func (s *rowSource) each(d tdf.Properties, yield func(sweep.Candidate) bool) error {
	rows, err := s.rows()
	if err != nil {
		return err
	}
	for row, err := range rows {
		if err != nil {
			return err
		}
		c, err := row.Candidate(d, s.input)
		if err != nil {
			return err
		}
		if !yield(c) {
			return nil
		}
	}
	return nil
}
