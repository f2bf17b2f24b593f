package run

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/sweep"
)

// maxLine limits a line of the input, in bytes. Longer values cannot be arguments of a program.
const maxLine = 128 << 10

// A source is a list of values: those after ":::", or the lines of a file.
type source struct {
	values []string
	path   string // "-" for stdin; "" if there are values
	linked bool   // the values belong to those of the source before

	file io.Reader
	once bool // the file is a pipe, which can be read only once
}

// A reading is the values of the columns of each value of a source. Without --colsep, there is one column.
type reading = iter.Seq2[[]string, error]

// allSources returns the sources of the flags, and then those of the arguments.
func (r *run) allSources(ofArguments []source) (all []source, err error) {
	if r.lines {
		all = append(all, source{path: "-"})
	}
	for _, path := range r.argFiles {
		all = append(all, source{path: path})
	}
	all = append(all, ofArguments...)
	stdins := 0
	for i := range all {
		all[i].linked = i > 0 && (all[i].linked || r.link)
		if all[i].path == "-" {
			stdins++
		}
	}
	if stdins > 1 {
		return nil, cli.Usagef("several sources read stdin: want one of --lines, --arg-file - and :::: -")
	}
	return all, nil
}

// openSources opens the sources, and returns a row for each combination of their values. The last source changes
// fastest.
func (r *run) openSources(ctx context.Context, sources []source, t *template) (rows *cli.Rows, err error) {
	split, err := r.splitting()
	if err != nil {
		return nil, err
	}
	rows = &cli.Rows{Name: "inputs", Close: func() { closeAll(sources) }}
	defer func() {
		if err != nil {
			closeAll(sources)
		}
	}()
	for i := range sources {
		err := sources[i].open(ctx, r.a)
		if err != nil {
			return nil, err
		}
		rows.Once = rows.Once || sources[i].once
	}
	if split.columns == nil {
		err := t.parse(columnNames(max(r.maxArgs, r.maxReplace, len(sources))))
		if err != nil {
			return nil, err
		}
	}
	rows.Read = func() (iter.Seq2[sweep.Row, error], error) {
		var all []reading
		for i := range sources {
			all = append(all, split.read(&sources[i]))
		}
		values := product(linked(sources, all, r.link))
		if r.groups() {
			return r.grouped(values, t), nil
		}
		return numbered(values), nil
	}
	return rows, nil
}

func (s *source) open(ctx context.Context, a *cli.App) error {
	switch s.path {
	case "":
		return nil
	case "-":
		s.file, s.once = cli.Stream(ctx, a.Stdin), true
		return nil
	}
	f, err := a.OpenFile(ctx, s.path)
	if err != nil {
		return cli.Usagef("inputs: %v", err)
	}
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		f.Close()
		return cli.Usagef("inputs: %s is not a readable file", s.path)
	}
	s.file, s.once = f, !info.Mode().IsRegular()
	if s.once {
		s.file = cli.Interruptible(ctx, f)
	}
	return nil
}

func closeAll(sources []source) {
	for _, s := range sources {
		if file, is := s.file.(io.Closer); is && s.path != "-" {
			file.Close()
		}
	}
}

// A splitting says how the sources become values, and values become columns.
type splitting struct {
	end     string // of each value
	columns *regexp.Regexp
	values  bool // the values after ":::" are split, too
}

func (r *run) splitting() (s splitting, err error) {
	s.end = "\n"
	switch {
	case r.null:
		s.end = "\x00"
	case r.delimiter != "":
		quoted := strings.ReplaceAll(strings.ReplaceAll(r.delimiter, `"`, `\"`), "\n", `\n`)
		s.end, err = strconv.Unquote(`"` + quoted + `"`)
		s.values = true
		if err != nil {
			return s, cli.Usagef(`invalid value %q for --delimiter: want a text, with escapes such as \t or \x1e`, r.delimiter)
		}
	}
	if r.colsep != "" {
		s.columns, err = regexp.Compile(r.colsep)
		if err != nil {
			return s, cli.Usagef("invalid value %q for --colsep: %v", r.colsep, err)
		}
	}
	return s, nil
}

// read returns the values of a source from its beginning.
func (s splitting) read(from *source) reading {
	values := iter.Seq2[string, error](func(yield func(string, error) bool) {
		for _, v := range from.values {
			parts := []string{v}
			if s.values {
				parts = strings.Split(strings.TrimSuffix(v, s.end), s.end)
			}
			for _, part := range parts {
				if !yield(part, nil) {
					return
				}
			}
		}
	})
	if from.path != "" {
		values = func(yield func(string, error) bool) {
			if f, is := from.file.(*os.File); is && !from.once {
				_, err := f.Seek(0, io.SeekStart)
				if err != nil {
					yield("", err)
					return
				}
			}
			linesOf(from.file, s.end)(yield)
		}
	}
	return func(yield func([]string, error) bool) {
		for v, err := range values {
			columns := []string{v}
			if s.columns != nil {
				columns = s.columns.Split(v, -1)
				for i := range columns {
					columns[i] = strings.TrimSpace(columns[i])
				}
			}
			if !yield(columns, err) || err != nil {
				return
			}
		}
	}
}

// linesOf returns the texts that end with the given text. A text that is as long as an endless one is an error.
func linesOf(in io.Reader, end string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		buffered := bufio.NewReaderSize(in, maxLine)
		var text []byte
		for number := 1; ; {
			part, err := buffered.ReadSlice(end[len(end)-1])
			text = append(text, part...)
			if len(text) >= maxLine+len(end) {
				yield("", fmt.Errorf("line %d is longer than %d KiB, too long for an argument", number, maxLine>>10))
				return
			}
			atEnd := errors.Is(err, io.EOF)
			switch {
			case errors.Is(err, bufio.ErrBufferFull), err == nil && !bytes.HasSuffix(text, []byte(end)):
				continue
			case err != nil && !atEnd:
				yield("", err)
				return
			case atEnd && len(text) == 0:
				return
			}
			if !yield(strings.TrimSuffix(string(text), end), nil) || atEnd {
				return
			}
			text, number = text[:0], number+1
		}
	}
}

// linked joins the columns of sources that belong together. The shortest of them ends the rows, or the longest if the
// others begin again.
func linked(sources []source, all []reading, again bool) (groups []reading) {
	for i := 0; i < len(all); {
		next := i + 1
		for next < len(all) && sources[next].linked {
			next++
		}
		if next == i+1 {
			groups = append(groups, all[i])
		} else {
			groups = append(groups, zip(all[i:next], again))
		}
		i = next
	}
	return groups
}

// A follower reads one of the sources that belong together.
type follower struct {
	next  func() ([]string, error, bool)
	seen  [][]string // what it has read, if it begins again
	at    int
	ended bool
}

// value returns the next value, or nil after the last one.
func (f *follower) value(again bool) ([]string, error) {
	if !f.ended {
		v, err, more := f.next()
		if err != nil || more && !again {
			return v, err
		}
		if more {
			f.seen = append(f.seen, v)
			return v, nil
		}
		f.ended = true
	}
	if len(f.seen) == 0 {
		return nil, nil
	}
	f.at++
	return f.seen[(f.at-1)%len(f.seen)], nil
}

func zip(all []reading, again bool) reading {
	return func(yield func([]string, error) bool) {
		followers := make([]*follower, len(all))
		for i, one := range all {
			next, stop := iter.Pull2(one)
			defer stop()
			followers[i] = &follower{next: next}
		}
		for {
			var row []string
			live := false
			for _, f := range followers {
				v, err := f.value(again)
				if err != nil {
					yield(nil, err)
					return
				}
				if v == nil {
					return
				}
				live = live || !f.ended
				row = append(row, v...)
			}
			if !live || !yield(row, nil) {
				return
			}
		}
	}
}

// product returns each combination. It reads the first group as it goes, and the others into memory.
func product(groups []reading) reading {
	if len(groups) == 1 {
		return groups[0]
	}
	return func(yield func([]string, error) bool) {
		inner := make([][][]string, len(groups)-1)
		for i := range inner {
			for v, err := range groups[i+1] {
				if err != nil {
					yield(nil, err)
					return
				}
				inner[i] = append(inner[i], v)
			}
			if len(inner[i]) == 0 {
				return
			}
		}
		for first, err := range groups[0] {
			if err != nil {
				yield(nil, err)
				return
			}
			at := make([]int, len(inner))
			for more := true; more; more = advance(at, inner) {
				row := slices.Clone(first)
				for i, values := range inner {
					row = append(row, values[at[i]]...)
				}
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}

// advance counts up, and reports whether there is another combination.
func advance(at []int, of [][][]string) bool {
	for i := len(at) - 1; i >= 0; i-- {
		at[i]++
		if at[i] < len(of[i]) {
			return true
		}
		at[i] = 0
	}
	return false
}

// numbered returns a row for the columns of each input.
func numbered(all reading) iter.Seq2[sweep.Row, error] {
	return func(yield func(sweep.Row, error) bool) {
		number := int64(0)
		for values, err := range all {
			number++
			if !yield(rowOf(number, values), err) || err != nil {
				return
			}
		}
	}
}
