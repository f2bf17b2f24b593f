package run

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/sweep"
)

// maxLine limits a line of the input, in bytes. Longer values cannot be arguments of a program.
const maxLine = 128 << 10

// inputs are the rows for which the command runs.
type inputs struct {
	rows  iter.Seq2[sweep.Row, error]
	named bool  // the rows have columns with names
	total int64 // -1 if it is unknown
	close func()
}

// openInputs opens the rows that the flags and arguments describe. sources are the values after each ":::".
func (r *run) openInputs(ctx context.Context, sources [][]string) (*inputs, error) {
	switch {
	case r.grid != "":
		g, err := sweep.ParseGrid(r.grid)
		if err != nil {
			return nil, cli.Usagef("--grid: %v", err)
		}
		return &inputs{rows: g.Rows(), named: true, total: g.Len(), close: func() {}}, nil
	case r.from != "":
		return r.openFile(ctx)
	case r.lines:
		in := cli.Stream(ctx, r.a.Stdin)
		end := byte('\n')
		if r.null {
			end = 0
		}
		return &inputs{rows: linesOf(in, end), total: -1, close: func() {}}, nil
	case len(sources) > 0:
		total := int64(1)
		for _, s := range sources {
			total *= int64(len(s))
		}
		return &inputs{rows: combinations(sources), total: total, close: func() {}}, nil
	}
	once := func(yield func(sweep.Row, error) bool) { yield(sweep.Row{Line: 1}, nil) }
	return &inputs{rows: once, total: 1, close: func() {}}, nil
}

func (r *run) openFile(ctx context.Context) (*inputs, error) {
	kind := strings.ToLower(strings.TrimPrefix(filepath.Ext(r.from), "."))
	if r.format != "" {
		kind = r.format
	}
	parsers := map[string]func(io.Reader) iter.Seq2[sweep.Row, error]{
		"csv": sweep.CSV, "jsonl": sweep.JSONL, "ndjson": sweep.JSONL,
	}
	read := parsers[kind]
	if read == nil {
		return nil, cli.Usagef("--from %s: unknown format; add --format csv or --format jsonl", r.from)
	}
	if r.from == "-" {
		return &inputs{rows: read(cli.Stream(ctx, r.a.Stdin)), named: true, total: -1, close: func() {}}, nil
	}
	f, err := r.a.OpenFile(ctx, r.from)
	if err != nil {
		return nil, cli.Usagef("--from: %v", err)
	}
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		f.Close()
		return nil, cli.Usagef("--from %s: not a readable file", r.from)
	}
	in := &inputs{named: true, total: -1, close: func() { f.Close() }}
	if !info.Mode().IsRegular() {
		in.rows = read(cli.Interruptible(ctx, f))
		return in, nil
	}
	in.total, err = check(read(f))
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, cli.Usagef("--from %s: %v", r.from, err)
	}
	in.rows = read(f)
	return in, nil
}

// check counts the rows of a file. So an invalid row is found before anything runs.
func check(rows iter.Seq2[sweep.Row, error]) (n int64, err error) {
	for _, err := range rows {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// linesOf returns a row for each line. A line that is as long as an endless one is an error.
func linesOf(in io.Reader, end byte) iter.Seq2[sweep.Row, error] {
	return func(yield func(sweep.Row, error) bool) {
		buffered := bufio.NewReaderSize(in, maxLine)
		for number := int64(1); ; number++ {
			text, err := buffered.ReadSlice(end)
			if errors.Is(err, bufio.ErrBufferFull) {
				yield(sweep.Row{}, fmt.Errorf("line %d is longer than %d KiB, too long for an argument", number, maxLine>>10))
				return
			}
			if err != nil && !errors.Is(err, io.EOF) {
				yield(sweep.Row{}, err)
				return
			}
			value := strings.TrimSuffix(string(text), string(end))
			if err != nil && value == "" {
				return
			}
			if !yield(sweep.Row{Line: number, Params: []sweep.Param{{Name: "1", Text: value}}}, nil) || err != nil {
				return
			}
		}
	}
}

// combinations returns a row for each combination of values. The last source changes fastest.
func combinations(sources [][]string) iter.Seq2[sweep.Row, error] {
	return func(yield func(sweep.Row, error) bool) {
		at := make([]int, len(sources))
		for number := int64(1); ; number++ {
			row := sweep.Row{Line: number}
			for i, s := range sources {
				row.Params = append(row.Params, sweep.Param{Name: strconv.Itoa(i + 1), Text: s[at[i]]})
			}
			if !yield(row, nil) {
				return
			}
			i := len(at) - 1
			for ; i >= 0; i-- {
				at[i]++
				if at[i] < len(sources[i]) {
					break
				}
				at[i] = 0
			}
			if i < 0 {
				return
			}
		}
	}
}

// split separates a command from the sources of values after each ":::".
func split(args []string) (command []string, sources [][]string, err error) {
	const mark = ":::"
	i := slices.Index(args, mark)
	if i < 0 {
		return args, nil, nil
	}
	command, args = args[:i], args[i:]
	for len(args) > 0 {
		args = args[1:]
		next := slices.Index(args, mark)
		if next < 0 {
			next = len(args)
		}
		if next == 0 {
			return nil, nil, cli.Usagef("no value after %s: want at least one", mark)
		}
		sources, args = append(sources, args[:next]), args[next:]
	}
	return command, sources, nil
}

// lookPath reports whether this machine has a command, as the worker will look for it.
func (r *run) lookPath(command string) error {
	if parse([]string{command}, true).uses() {
		return nil
	}
	list := filepath.SplitList(r.a.Getenv("PATH"))
	if strings.Contains(command, "/") {
		list = []string{""}
		if !filepath.IsAbs(command) {
			list = []string{r.dir}
		}
	}
	for _, dir := range list {
		info, err := os.Stat(filepath.Join(dir, command))
		if err == nil && !info.IsDir() {
			return nil
		}
	}
	return cli.Usagef("command not found: %s; the first word after the flags is the program to run", command)
}
