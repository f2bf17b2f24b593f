package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/sweep"
)

// A rowSource is where the rows of a sweep come from.
type rowSource struct {
	name  string                                      // what errors call it
	rows  func() (iter.Seq2[sweep.Row, error], error) // from the first one on; nil: this is no sweep, but one task
	once  bool                                        // they can be read once only
	input *sweep.Template                             // nil: the parameters in their order
	close func()
}

// sweep reads what the flags say about rows and the template.
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
			err = usage("--input: %v", err)
		}
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// mostTasks is what keeps a grid with a zero too many from filling this machine's memory, and Redis's: a task needs
// about 1 KiB there.
const mostTasks = 100_000_000

func (o *opening) fromGrid(s *rowSource) error {
	g, err := sweep.ParseGrid(o.grid)
	if err != nil {
		return usage("--grid: %v", err)
	}
	if n := g.Len(); n > mostTasks {
		return usage("--grid: %d points are more tasks than a Redis holds; at most %d are opened at once", n, mostTasks)
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
		s.stream(ctx, "stdin", o.a.stdin, read)
		return nil
	}
	f, err := openFile(ctx, o.from)
	if err != nil {
		return usage("--from: %v", err)
	}
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		f.Close()
		return usage("--from %s: it is no file that can be read", o.from)
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

// stream is for what can be read once, and may keep one waiting.
func (s *rowSource) stream(ctx context.Context, name string, r io.Reader, read func(io.Reader) iter.Seq2[sweep.Row, error]) {
	in := interruptible(ctx, r)
	s.name, s.once, s.close = name, true, func() { in.Close() }
	s.rows = func() (iter.Seq2[sweep.Row, error], error) { return read(in), nil }
}

// reader returns what reads the rows from a file.
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
		return nil, usage("--format %q is neither csv nor jsonl", o.format)
	}
	return nil, usage("--from %s does not say what is in it; add --format csv or --format jsonl", o.from)
}

// A candidate is a task that may be opened.
type candidate struct {
	definition tdf.Properties
	point      sweep.Point
}

// candidates fills a definition for each row.
func (s *rowSource) candidates(d tdf.Properties) iter.Seq2[candidate, error] {
	return func(yield func(candidate, error) bool) {
		if s.rows == nil {
			yield(candidate{definition: d}, nil)
			return
		}
		rows, err := s.rows()
		if err != nil {
			yield(candidate{}, fmt.Errorf("%s: %w", s.name, err))
			return
		}
		for row, err := range rows {
			var c candidate
			if err == nil {
				c, err = s.candidate(d, row)
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", s.name, err)
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

func (s *rowSource) candidate(d tdf.Properties, row sweep.Row) (candidate, error) {
	var err error
	if s.input != nil {
		d.Input, err = s.input.Fill(&row)
	} else {
		d.Input, err = row.Words()
	}
	d.Meta = row.JSON()
	if err == nil && len(d.Meta) > tdf.MaxMeta {
		err = fmt.Errorf("its parameters have %d bytes as JSON, and a task's meta has room for %d; put long values into files, and their names here",
			len(d.Meta), tdf.MaxMeta)
	}
	if err == nil {
		err = d.Validate()
	}
	if err != nil {
		return candidate{}, row.Wrong(err)
	}
	return candidate{d, row.Point()}, nil
}
