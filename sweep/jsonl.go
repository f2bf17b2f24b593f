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
)

// JSONL reads rows from lines that are a JSON object each. Its members are the parameters, in their order;
// other lines may have others. A number is taken as it is written, null is an empty text, and an array or an
// object is compact JSON. Blank lines are left out. The sequence ends with the first error, a *[RowError]
// unless reading itself failed.
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

// failingReader remembers what went wrong: the scanner still returns the half of a line that came before it.
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
		return &RowError{Line: line + 1, Err: fmt.Errorf("it has more than %d bytes", maxRecord)}
	case err == nil && rows == 0:
		return &RowError{Line: max(line, 1), Err: errNoRows}
	}
	return err
}

var errNoObject = errors.New(`it is not a JSON object, such as {"a": 1, "b": "x"}`)

// parseObject reads the parameters from one JSON object.
func parseObject(text []byte) ([]Param, error) {
	if !utf8.Valid(text) {
		return nil, errNotUTF8
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return nil, errNoObject
	}
	var params []Param
	var names []string
	for d.More() {
		p, err := parseMember(d, names)
		if err != nil {
			return nil, err
		}
		params, names = append(params, p), append(names, p.Name)
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("it is no valid JSON: %w", noEOF(err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something behind the JSON object")
	}
	return params, nil
}

func parseMember(d *json.Decoder, others []string) (Param, error) {
	name, err := d.Token() // of an object that is a string, or an error
	if err != nil {
		return Param{}, fmt.Errorf("it is no valid JSON: %w", noEOF(err))
	}
	p := Param{Name: name.(string)}
	if err := checkName(p.Name, others); err != nil {
		return Param{}, err
	}
	var value json.RawMessage
	if err := d.Decode(&value); err != nil {
		return Param{}, fmt.Errorf("the value of %s is no valid JSON: %w", strconv.Quote(p.Name), noEOF(err))
	}
	return p, p.set(value)
}

// set takes a value from JSON.
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

// noEOF says in words that a text ended too early.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends too early")
	}
	return err
}
