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
	total int64 // -1 if it is unknown
	close func()
}

// openInputs opens the rows that the flags and arguments describe, and parses the command for their columns if these
// are known. sources are the values after each ":::".
func (r *run) openInputs(ctx context.Context, sources [][]string, t *template) (*inputs, error) {
	switch {
	case r.grid != "":
		rows, err := cli.GridRows(r.grid)
		if err != nil {
			return nil, err
		}
		return namedInputs(rows, t)
	case r.from != "":
		rows, err := r.a.FileRows(ctx, r.from, r.format)
		if err != nil {
			return nil, err
		}
		return namedInputs(rows, t)
	}
	var columns []string
	in := &inputs{total: 1, close: func() {}}
	switch {
	case r.lines:
		end := byte('\n')
		if r.null {
			end = 0
		}
		in.rows, in.total, columns = linesOf(cli.Stream(ctx, r.a.Stdin), end), -1, []string{"1"}
	case len(sources) > 0:
		for i, s := range sources {
			columns = append(columns, strconv.Itoa(i+1))
			in.total *= int64(len(s))
		}
		in.rows = combinations(columns, sources)
	default:
		in.rows = func(yield func(sweep.Row, error) bool) { yield(sweep.Row{Line: 1}, nil) }
	}
	return in, t.parse(columns)
}

// namedInputs returns rows with columns. If they can be read twice, it counts them first, so that an invalid row, or
// one that the command cannot use, is found before anything runs.
func namedInputs(rows *cli.Rows, t *template) (in *inputs, err error) {
	in = &inputs{total: -1, close: rows.Close}
	defer func() {
		if err != nil {
			rows.Close()
		}
	}()
	in.rows, err = rows.Read()
	if err != nil || rows.Once {
		return in, err
	}
	in.total = 0
	for row, err := range in.rows {
		if err != nil {
			return in, cli.Usagef("%s: %v", rows.Name, err)
		}
		in.total++
		_, err = t.input(&row, in.total)
		if err != nil {
			return in, err
		}
	}
	in.rows, err = rows.Read()
	return in, err
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
func combinations(columns []string, sources [][]string) iter.Seq2[sweep.Row, error] {
	return func(yield func(sweep.Row, error) bool) {
		at := make([]int, len(sources))
		for number := int64(1); ; number++ {
			row := sweep.Row{Line: number}
			for i, s := range sources {
				row.Params = append(row.Params, sweep.Param{Name: columns[i], Text: s[at[i]]})
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

// instead says how to do what other marks of GNU parallel do.
var instead = map[string]string{
	"::::":  "read the lines of a file with --lines <FILE, or rows with columns with --from FILE",
	"::::+": "write the values that belong together into the columns of a CSV file, and read it with --from FILE",
	":::+":  "write the values that belong together into the columns of a CSV file, and read it with --from FILE",
}

// split separates a command from the sources of values after each ":::".
func split(args []string) (command []string, sources [][]string, err error) {
	const mark = ":::"
	for _, arg := range args {
		if instead[arg] != "" {
			return nil, nil, cli.Usagef("%s is not supported: %s", arg, instead[arg])
		}
	}
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

// mayDiffer reports whether a word may have placeholders.
func (r *run) mayDiffer(word string) bool { return !r.literal && strings.Contains(word, "{") }

// lookPath reports whether this machine has a command, as the worker will look for it.
func (r *run) lookPath(command string) error {
	if r.mayDiffer(command) {
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
