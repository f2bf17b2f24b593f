package sweep

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxRecord is the maximum size of a row in bytes. The parameters of a longer row would not fit into a task. Most
// longer rows come from a quote that is not closed.
const maxRecord = 1 << 20

var (
	errNoRows  = errors.New("no rows")
	errTooLong = fmt.Errorf("the row has more than %d bytes; is a quote not closed?", maxRecord)
	errNotUTF8 = errors.New("not UTF-8 text")
)

// CSV reads rows from comma-separated values (RFC 4180). The first record names the parameters. CSV accepts a byte
// order mark and CRLF, and skips blank lines. It keeps line ends in values and blanks around them, and removes blanks
// around names. The sequence ends with the first error. If reading from r fails, the error is the error of r. Any other
// error is a *[RowError].
func CSV(r io.Reader) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		c := newCSVReader(r)
		names, err := c.header()
		if err != nil {
			yield(Row{}, err)
			return
		}
		for n := 0; ; n++ {
			row, err := c.row(names)
			if errors.Is(err, io.EOF) && n > 0 {
				return
			}
			if errors.Is(err, io.EOF) {
				err = c.at(errNoRows)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

type csvReader struct {
	*csv.Reader
	source *boundedReader
	line   int64 // number of the first line of the last record
	next   int64 // number of the line after the last record
}

func newCSVReader(r io.Reader) *csvReader {
	b := &boundedReader{r: r}
	c := &csvReader{csv.NewReader(&lineEnds{r: withoutBOM(b)}), b, 1, 1}
	c.ReuseRecord = true
	return c
}

// record reads the next record. The returned fields are valid until the next call.
func (c *csvReader) record() ([]string, error) {
	c.source.left = maxRecord
	fields, err := c.Read()
	var syntax *csv.ParseError
	switch {
	case errors.Is(err, errTooLong):
		c.line = c.next
		return nil, c.at(errTooLong)
	case errors.Is(err, csv.ErrFieldCount):
		c.line = int64(err.(*csv.ParseError).StartLine)
		return nil, c.at(fmt.Errorf("the row has %s, but the header has %d", counted(len(fields), "value"),
			c.FieldsPerRecord))
	case errors.As(err, &syntax):
		c.line = int64(syntax.StartLine)
		return nil, c.at(fmt.Errorf("column %d: %w", syntax.Column, syntax.Err))
	case err != nil:
		return nil, err
	}
	line, _ := c.FieldPos(0)
	c.line = int64(line)
	c.next = c.line + 1
	for _, f := range fields {
		if !utf8.ValidString(f) {
			return nil, c.at(errNotUTF8)
		}
		c.next += int64(strings.Count(f, "\n"))
	}
	return fields, nil
}

func (c *csvReader) at(err error) error { return &RowError{Line: c.line, Err: err} }

func (c *csvReader) header() ([]string, error) {
	fields, err := c.record()
	if errors.Is(err, io.EOF) {
		return nil, c.at(errors.New("the input is empty; name the parameters in the first line"))
	}
	if err != nil {
		return nil, err
	}
	if len(fields) == 1 && strings.ContainsAny(fields[0], ";\t") {
		return nil, c.at(fmt.Errorf("the header is the single name %q; separate values with commas, not with "+
			"semicolons or tabs", fields[0]))
	}
	names, taken := make([]string, len(fields)), nameSet{}
	for i, f := range fields {
		names[i] = strings.TrimSpace(f)
		if err := taken.add(names[i]); err != nil {
			return nil, c.at(fmt.Errorf("column %d of the header: %w", i+1, err))
		}
	}
	return names, nil
}

// A nameSet holds the names of parameters.
type nameSet map[string]bool

// add adds a name. It returns an error if the name is invalid, or if the set has the name.
func (s nameSet) add(name string) error {
	switch {
	case name == "":
		return errors.New("a parameter has no name")
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("the name %q contains a control character", name)
	case s[name]:
		return fmt.Errorf("two parameters have the name %q", name)
	}
	s[name] = true
	return nil
}

func (c *csvReader) row(names []string) (Row, error) {
	fields, err := c.record()
	if err != nil {
		return Row{}, err
	}
	row := Row{Line: c.line, Params: make([]Param, len(names))}
	for i, name := range names {
		row.Params[i] = Param{Name: name, Text: strings.Clone(fields[i])}
	}
	return row, nil
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// boundedReader is a reader that fails after a number of bytes. It limits the memory that one record can take.
type boundedReader struct {
	r    io.Reader
	left int // number of bytes that may still be read
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// lineEnds writes each CRLF within quotes as CR CR LF, because the package csv drops one CR before each LF. Values then
// keep their line ends.
type lineEnds struct {
	r       io.Reader
	quoted  bool
	cr      bool // the last byte was CR
	chunk   [4096]byte
	changed []byte // of the chunk; Read has returned the part before next
	next    int
	err     error // of the last Read of r
}

func (l *lineEnds) Read(p []byte) (int, error) {
	if l.next == len(l.changed) && l.err == nil {
		var n int
		n, l.err = l.r.Read(l.chunk[:])
		l.change(l.chunk[:n])
	}
	n := copy(p, l.changed[l.next:])
	if l.next += n; l.next < len(l.changed) {
		return n, nil
	}
	return n, l.err
}

func (l *lineEnds) change(chunk []byte) {
	l.changed, l.next = l.changed[:0], 0
	for _, c := range chunk {
		if c == '\n' && l.cr && l.quoted {
			l.changed = append(l.changed, '\r')
		}
		l.quoted = l.quoted != (c == '"') // a doubled quote changes this twice
		l.cr = c == '\r'
		l.changed = append(l.changed, c)
	}
}

// withoutBOM returns a reader of r that skips the byte order mark, because spreadsheets begin a CSV file with this
// mark.
func withoutBOM(r io.Reader) io.Reader { return &bomReader{r: r} }

type bomReader struct {
	r     io.Reader
	begun bool
}

const bom = "\uFEFF"

func (b *bomReader) Read(p []byte) (int, error) {
	if b.begun {
		return b.r.Read(p)
	}
	b.begun = true
	head := make([]byte, len(bom))
	n, err := io.ReadFull(b.r, head)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	head = head[:n]
	if string(head) == bom {
		head = nil
	}
	b.r = io.MultiReader(strings.NewReader(string(head)), b.r)
	if err != nil {
		return 0, err
	}
	return b.r.Read(p)
}
