package cli

import (
	"context"
	"io"
	"iter"
	"path/filepath"
	"strings"

	"github.com/tdf-framework/tdf/sweep"
)

// Rows are the rows of a sweep, from a grid, a file or stdin.
type Rows struct {
	Name  string                                      // for errors
	Read  func() (iter.Seq2[sweep.Row, error], error) // reads from the first row
	Once  bool                                        // the rows can be read only once
	Close func()
}

// GridRows returns the points of --grid.
func GridRows(text string) (*Rows, error) {
	g, err := sweep.ParseGrid(text)
	if err != nil {
		return nil, Usagef("--grid: %v", err)
	}
	read := func() (iter.Seq2[sweep.Row, error], error) { return g.Rows(), nil }
	return &Rows{Name: "--grid", Read: read, Close: func() {}}, nil
}

// FileRows returns the rows of --from, in the format of --format. The name - stands for stdin.
func (a *App) FileRows(ctx context.Context, from, format string) (*Rows, error) {
	parse, err := rowParser(from, format)
	if err != nil {
		return nil, err
	}
	if from == "-" {
		return stream(ctx, "stdin", a.Stdin, parse), nil
	}
	f, err := a.OpenFile(ctx, from)
	if err != nil {
		return nil, Usagef("--from: %v", err)
	}
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		f.Close()
		return nil, Usagef("--from %s: not a readable file", from)
	}
	if !info.Mode().IsRegular() {
		return stream(ctx, from, f, parse), nil
	}
	read := func() (iter.Seq2[sweep.Row, error], error) {
		_, err := f.Seek(0, io.SeekStart)
		return parse(f), err
	}
	return &Rows{Name: from, Read: read, Close: func() { f.Close() }}, nil
}

// stream returns the rows of a pipe or terminal, which can be read only once.
func stream(ctx context.Context, name string, r io.Reader, parse func(io.Reader) iter.Seq2[sweep.Row, error]) *Rows {
	in := Interruptible(ctx, r)
	read := func() (iter.Seq2[sweep.Row, error], error) { return parse(in), nil }
	return &Rows{Name: name, Read: read, Once: true, Close: func() { in.Close() }}
}

// rowParser returns the parser for the format of the rows.
func rowParser(from, format string) (func(io.Reader) iter.Seq2[sweep.Row, error], error) {
	name := format
	if name == "" {
		name = strings.TrimPrefix(filepath.Ext(from), ".")
	}
	switch strings.ToLower(name) {
	case "csv":
		return sweep.CSV, nil
	case "jsonl", "ndjson":
		return sweep.JSONL, nil
	}
	if format != "" {
		return nil, Usagef("invalid value %q for --format: want csv or jsonl", format)
	}
	return nil, Usagef("--from %s: unknown format; add --format csv or --format jsonl", from)
}
