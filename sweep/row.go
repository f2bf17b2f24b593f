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
)

// A Param is one parameter of a row.
type Param struct {
	Name string
	Text string // its value, as a program gets it
	json string // its value in JSON, where that is not what jsonOf says
}

// A Row is one point of a sweep: parameters in the order in which they were given.
type Row struct {
	Line   int64 // where it begins in its file, from 1; of a grid the number of the point
	Params []Param
	ofGrid bool
}

// A RowError says which row is wrong, and why.
type RowError struct {
	Line   int64 // as in [Row]
	Err    error
	ofGrid bool
}

// Wrong returns a *[RowError] about the row.
func (r *Row) Wrong(err error) error { return &RowError{r.Line, err, r.ofGrid} }

func (e *RowError) Error() string {
	if e.ofGrid {
		return fmt.Sprintf("point %d: %v", e.Line, e.Err)
	}
	return fmt.Sprintf("line %d: %v", e.Line, e.Err)
}

func (e *RowError) Unwrap() error { return e.Err }

// index is -1 where there is no such parameter.
func (r *Row) index(name string) int {
	return slices.IndexFunc(r.Params, func(p Param) bool { return p.Name == name })
}

func (r *Row) names() []string {
	names := make([]string, len(r.Params))
	for i, p := range r.Params {
		names[i] = p.Name
	}
	return names
}

// JSON returns the parameters as one compact JSON object, in their order. A value that is a number of up to 15 digits,
// such as 0.5 or 1e-3, is a number there, as it was written. Any other text is a string, also one that
// would lose something as a number (docs/tdf.md, "Sweeps").
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
	_ = e.Encode(s) // a string cannot fail
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// Words returns the values as an input, in their order: each is one word of it.
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
		return fmt.Errorf("%s has a NUL byte in it, which no argument of a program can have", p.Name)
	}
	return nil
}

func checkInput(input string) (string, error) {
	if len(input) > tdf.MaxInput {
		return "", fmt.Errorf("the input has %d bytes; at most %d can be passed to a program", len(input), tdf.MaxInput)
	}
	return input, nil
}

// A Point tells points apart. Two rows are the same point when they have the same parameters with the
// same texts, in whatever order, and however JSON writes them: 1 and "1" are the same to a program.
type Point [16]byte

// Point returns the row's.
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

// PointOf returns the point whose parameters a task's meta has; false where they are no JSON object.
func PointOf(meta string) (Point, bool) {
	params, err := parseObject([]byte(meta))
	if err != nil {
		return Point{}, false
	}
	row := Row{Params: params}
	return row.Point(), true
}
