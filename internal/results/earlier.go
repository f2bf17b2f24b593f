package results

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
)

// An earlier has the rows of a CSV that follow its header. It returns them as they stand, because a CSV that is parsed
// and written again may have other line ends.
type earlier struct {
	names []string // nil if the CSV is empty
	rows  *csv.Reader
	raw   bytes.Buffer // what rows has read, from the next row
	begin int64        // offset of raw
}

func newEarlier(from io.Reader) (e *earlier, err error) {
	e = &earlier{}
	e.rows = csv.NewReader(io.TeeReader(from, &e.raw))
	_, e.names, err = e.next()
	switch {
	case errors.Is(err, io.EOF):
		return e, nil
	case err == nil && e.names[0] != firstColumns[0]:
		err = errors.New("it has no results: its first column is not " + firstColumns[0])
	}
	return e, err
}

// next returns the next row, without its line end. After the last row, the error is [io.EOF].
func (e *earlier) next() (row string, cells []string, err error) {
	cells, err = e.rows.Read()
	if err != nil {
		return "", nil, err
	}
	row = string(e.raw.Next(int(e.rows.InputOffset() - e.begin)))
	e.begin = e.rows.InputOffset()
	return strings.TrimRight(row, "\r\n"), cells, nil
}

// join returns the names of the columns of both: first those of the earlier rows.
func (e *earlier) join(names []string) []string {
	joined := slices.Clone(e.names)
	for _, name := range names {
		if !slices.Contains(e.names, name) {
			joined = append(joined, name)
		}
	}
	return joined
}

// copy writes the rows, with empty cells for the columns that they lack.
func (e *earlier) copy(out io.Writer, columns int) error {
	for {
		row, _, err := e.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			_, err = io.WriteString(out, row+strings.Repeat(",", columns-len(e.names))+"\n")
		}
		if err != nil {
			return err
		}
	}
}

// Count reads a CSV that [CSV] has written, or an empty one, and returns the number of its rows.
func Count(from io.Reader) (rows int64, err error) {
	e, err := newEarlier(from)
	for err == nil && e.names != nil {
		_, _, err = e.next()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		rows++
	}
	return rows, err
}
