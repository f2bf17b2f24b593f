package run

import (
	"context"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/sweep"
)

// inputs are the rows for which the command runs.
type inputs struct {
	rows   iter.Seq2[sweep.Row, error]
	total  int64  // -1 if it is unknown
	single bool   // there are no inputs, so the command runs once
	blocks string // the directory of the blocks of --pipe
	close  func()
}

// openInputs opens the rows that the flags and arguments describe, and parses the command for their columns if these
// are known.
func (r *run) openInputs(ctx context.Context, sources []source, t *template) (*inputs, error) {
	in, err := r.openRows(ctx, sources, t)
	if err != nil {
		return nil, err
	}
	if r.shuf || r.halt.percent && in.total < 0 {
		err = in.collect(r.shuf)
		if err != nil {
			in.close()
			return nil, err
		}
	}
	return in, nil
}

func (r *run) openRows(ctx context.Context, sources []source, t *template) (*inputs, error) {
	var rows *cli.Rows
	var err error
	switch {
	case r.grid != "":
		rows, err = cli.GridRows(r.grid)
	case r.from != "":
		rows, err = r.a.FileRows(ctx, r.from, r.format)
	case r.pipe:
		return r.openBlocks(ctx, sources, t)
	case len(sources) > 0:
		rows, err = r.openSources(ctx, sources, t)
	default:
		once := func(yield func(sweep.Row, error) bool) { yield(sweep.Row{Line: 1}, nil) }
		return &inputs{rows: once, total: 1, single: true, close: func() {}}, t.parse(nil)
	}
	if err != nil {
		return nil, err
	}
	return countedInputs(rows, t)
}

// countedInputs returns rows. If they can be read twice, it counts them first, so that an invalid row, or one that the
// command cannot use, is found before anything runs.
func countedInputs(rows *cli.Rows, t *template) (in *inputs, err error) {
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

// collect reads all rows into memory, and shuffles them if asked to.
func (in *inputs) collect(shuffle bool) error {
	var all []sweep.Row
	for row, err := range in.rows {
		if err != nil {
			return cli.Usagef("%v", err)
		}
		all = append(all, row)
	}
	if shuffle {
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	in.total = int64(len(all))
	in.rows = func(yield func(sweep.Row, error) bool) {
		for _, row := range all {
			if !yield(row, nil) {
				return
			}
		}
	}
	return nil
}

// columnNames returns the names of n columns without names.
func columnNames(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = strconv.Itoa(i + 1)
	}
	return all
}

// rowOf returns a row of values without names.
func rowOf(number int64, values []string) sweep.Row {
	row := sweep.Row{Line: number, Params: make([]sweep.Param, len(values))}
	for i, name := range columnNames(len(values)) {
		row.Params[i] = sweep.Param{Name: name, Text: values[i]}
	}
	return row
}

// split separates a command from the sources of values after ":::", and of files after "::::". After a mark with a
// plus, the values belong to those of the source before.
func split(args []string) (command []string, sources []source, err error) {
	isMark := func(arg string) bool { return slices.Contains([]string{":::", "::::", ":::+", "::::+"}, arg) }
	i := slices.IndexFunc(args, isMark)
	if i < 0 {
		return args, nil, nil
	}
	command, args = args[:i], args[i:]
	for len(args) > 0 {
		mark := args[0]
		args = args[1:]
		next := slices.IndexFunc(args, isMark)
		if next < 0 {
			next = len(args)
		}
		if next == 0 {
			return nil, nil, cli.Usagef("no value after %s: want at least one", mark)
		}
		kind, linked := strings.CutSuffix(mark, "+")
		if kind == ":::" {
			sources = append(sources, source{values: args[:next], linked: linked})
		} else {
			for _, path := range args[:next] {
				sources = append(sources, source{path: path, linked: linked})
			}
		}
		args = args[next:]
	}
	if sources[0].linked {
		sources[0].linked = false // it may follow a source of --arg-file
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
