package sweep

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/task"
)

// A Param is one parameter of a row.
type Param struct {
	Name string
	Text string // the value as the program gets it
	json string // the value in JSON; if the field is "", appendJSON derives the JSON from Text
}

// A Row is one point of a sweep.
type Row struct {
	Line   int64 // number of the row's first line in its file, or number of the point in its grid; the first is 1
	Params []Param
	ofGrid bool // the row is a point of a grid
}

// A RowError is an error about one row.
type RowError struct {
	Line   int64 // number of the line or of the point, as in [Row]
	Err    error
	ofGrid bool
}

// Wrong returns a *[RowError] that wraps err and names the row.
func (r *Row) Wrong(err error) error { return &RowError{r.Line, err, r.ofGrid} }

func (e *RowError) Error() string {
	if e.ofGrid {
		return fmt.Sprintf("point %d: %v", e.Line, e.Err)
	}
	return fmt.Sprintf("line %d: %v", e.Line, e.Err)
}

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (e *RowError) Code() tdf.Code { return tdf.CodeInvalid }

func (e *RowError) Unwrap() error { return e.Err }

// index returns the position of a parameter, or -1 if the row has no such parameter.
func (r *Row) index(name string) int {
	return slices.IndexFunc(r.Params, func(p Param) bool { return p.Name == name })
}

// HasParams reports whether a meta has all of some parameters, each as NAME=VALUE.
func HasParams(meta string, wanted []string) bool {
	params, err := parseObject([]byte(meta))
	row := Row{Params: params}
	return err == nil && !slices.ContainsFunc(wanted, func(w string) bool {
		name, value, _ := strings.Cut(w, "=")
		i := row.index(name)
		return i < 0 || params[i].Text != value
	})
}

func (r *Row) names() []string {
	names := make([]string, len(r.Params))
	for i, p := range r.Params {
		names[i] = p.Name
	}
	return names
}

// JSON returns the parameters as one compact JSON object, in their order. A value such as 0.5 or 1e-3 becomes a
// number and keeps its spelling. All other values become strings, even numbers that would lose precision
// as a float64 (docs/tdf.md, "Sweeps").
func (r *Row) JSON() string {
	b := []byte{'{'}
	for i, p := range r.Params {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, p.Name), ':')
		b = p.appendJSON(b)
	}
	return string(append(b, '}'))
}

func (p *Param) appendJSON(b []byte) []byte {
	switch {
	case p.json != "":
		return append(b, p.json...)
	case isNumber(p.Text):
		return append(b, p.Text...)
	}
	return appendString(b, p.Text)
}

func appendString(b []byte, s string) []byte {
	buf := bytes.NewBuffer(b)
	e := json.NewEncoder(buf)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can always be encoded
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// Words returns an input with one word for each value, in the order of the parameters.
func (r *Row) Words() (string, error) {
	words := make([]string, len(r.Params))
	for i, p := range r.Params {
		if err := p.checkText(); err != nil {
			return "", err
		}
		words[i] = Quote(p.Text)
	}
	return checkInput(strings.Join(words, " "))
}

func (p *Param) checkText() error {
	if strings.IndexByte(p.Text, 0) >= 0 {
		return fmt.Errorf("the value of %s contains a NUL byte; arguments of programs cannot contain one", p.Name)
	}
	return nil
}

func checkInput(input string) (string, error) {
	if len(input) > task.MaxInput {
		return "", fmt.Errorf("the input has more than %d bytes, which no program accepts", task.MaxInput)
	}
	return input, nil
}

// A Point identifies the parameters of a row and their values. Two rows have the same Point if they have the same names
// and texts, in any order. The type in JSON does not matter, because a program gets the same text from 1 and "1".
type Point [16]byte

// Point returns the row's Point.
func (r *Row) Point() Point {
	params := slices.Clone(r.Params)
	slices.SortFunc(params, func(a, b Param) int { return strings.Compare(a.Name, b.Name) })
	var b []byte
	for _, p := range params {
		for _, s := range []string{p.Name, p.Text} {
			b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
		}
	}
	sum := sha256.Sum256(b)
	return Point(sum[:])
}

// PointOf returns the Point of the parameters in a task's meta. If the meta is not a JSON object, PointOf returns
// false.
func PointOf(meta string) (Point, bool) {
	params, err := parseObject([]byte(meta))
	if err != nil {
		return Point{}, false
	}
	row := Row{Params: params}
	return row.Point(), true
}
