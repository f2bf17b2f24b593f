package sweep

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/task"
)

// JSONL reads rows from lines. Each line is a JSON object. The members of the object are the row's parameters, in their
// order. Lines may have different parameters. Numbers keep their spelling, null becomes an empty text, and arrays and
// objects become compact JSON. JSONL skips blank lines. The sequence ends with the first error. If reading from r
// fails, the error is the error of r. Any other error is a *[RowError].
func JSONL(r io.Reader) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		source := &failingReader{r: r}
		lines := bufio.NewScanner(withoutBOM(source))
		lines.Buffer(nil, maxRecord)
		var line, rows int64
		for lines.Scan() {
			line++
			text := bytes.TrimSpace(lines.Bytes())
			if len(text) == 0 {
				continue
			}
			rows++
			params, err := parseObject(text)
			if err != nil {
				err = cmp.Or(source.err, error(&RowError{Line: line, Err: err}))
			}
			if !yield(Row{Line: line, Params: params}, err) || err != nil {
				return
			}
		}
		if err := endOfLines(lines.Err(), line, rows); err != nil {
			yield(Row{}, err)
		}
	}
}

// failingReader keeps the error of its reader. After a failed read, the scanner first returns the incomplete last line.
// JSONL then returns the kept error, instead of an error about that line.
type failingReader struct {
	r   io.Reader
	err error
}

func (f *failingReader) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

func endOfLines(err error, line, rows int64) error {
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return &RowError{Line: line + 1, Err: fmt.Errorf("the line has more than %d bytes", maxRecord)}
	case err == nil && rows == 0:
		return &RowError{Line: max(line, 1), Err: errNoRows}
	}
	return err
}

var errNoObject = errors.New(`not a JSON object such as {"a": 1, "b": "x"}`)

// parseObject reads the parameters from one JSON object.
func parseObject(text []byte) ([]Param, error) {
	if !utf8.Valid(text) {
		return nil, errNotUTF8
	}
	if half := task.LoneSurrogate(text); half != "" {
		return nil, fmt.Errorf("%s is half of a character; write both halves, as in \\ud83d\\ude00", half)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return nil, errNoObject
	}
	var params []Param
	names := nameSet{}
	for d.More() {
		p, err := parseMember(d, names)
		if err != nil {
			return nil, err
		}
		params = append(params, p)
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("invalid JSON: %w", withoutEOF(err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text follows the JSON object")
	}
	return params, nil
}

func parseMember(d *json.Decoder, names nameSet) (Param, error) {
	name, err := d.Token() // at this place in an object, Token returns a string or an error
	if err != nil {
		return Param{}, fmt.Errorf("invalid JSON: %w", withoutEOF(err))
	}
	p := Param{Name: name.(string)}
	if err := names.add(p.Name); err != nil {
		return Param{}, err
	}
	var value json.RawMessage
	if err := d.Decode(&value); err != nil {
		return Param{}, fmt.Errorf("the value of %s is invalid JSON: %w", strconv.Quote(p.Name), withoutEOF(err))
	}
	return p, p.set(value)
}

// set sets the parameter's value from a JSON value, which must be valid.
func (p *Param) set(value []byte) error {
	switch value[0] {
	case '"':
		err := json.Unmarshal(value, &p.Text)
		p.json = string(appendString(nil, p.Text))
		return err
	case 'n':
		p.json = "null"
		return nil
	}
	var compact bytes.Buffer
	err := json.Compact(&compact, value)
	p.Text = compact.String()
	p.json = p.Text
	return err
}

// withoutEOF replaces io.EOF with another error for a line that ends too early. Callers take io.EOF for the end of the
// whole input.
func withoutEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the text ends too early")
	}
	return err
}
