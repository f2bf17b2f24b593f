package results

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/internal/jsonview"
)

// A field is a key of a JSON object, with its value.
type field struct {
	key   string
	value json.RawMessage
}

// fieldsOf returns the fields of a JSON object in their order. An empty text has no fields. Any other text
// is one field with the key wholeKey.
func fieldsOf(text string) []field {
	if text == "" {
		return nil
	}
	object, ok := jsonview.ParseObject(text)
	if !ok {
		return whole(text)
	}
	d := json.NewDecoder(bytes.NewReader(object))
	d.Token() // {
	var all []field
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			break // cannot happen, because the JSON is valid
		}
		all = append(all, field{key.(string), value})
	}
	return all
}

// maxLastLine is the maximum length of a last line with fields, in bytes. A longer line is data, not a summary of the
// run.
const maxLastLine = 64 << 10

// lastLine returns the last line of an output that is not blank. If this line is longer than maxLastLine, it returns
// "".
func lastLine(output string) string {
	output = strings.TrimRight(output, " \t\r\n")
	line := output[max(0, len(output)-maxLastLine-1):]
	if i := strings.LastIndexAny(line, "\r\n"); i >= 0 || len(line) <= maxLastLine {
		return line[i+1:]
	}
	return ""
}

// maxLeftOut is how many names of fields without a column are kept.
const maxLeftOut = 10

// numbersOf returns the fields of a JSON object whose values are numbers, and keeps the names of the others. Any other
// text has no fields.
func (c *columns) numbersOf(text string) []field {
	if _, ok := jsonview.ParseObject(text); !ok {
		return nil
	}
	return slices.DeleteFunc(fieldsOf(text), func(f field) bool {
		if strings.ContainsRune("-0123456789", rune(f.value[0])) {
			return false
		}
		isNull := f.value[0] == 'n' // its cell is empty anyway
		if !isNull && len(c.leftOut) < maxLeftOut && !slices.Contains(c.leftOut, f.key) {
			c.leftOut = append(c.leftOut, f.key)
		}
		return true
	})
}

// text returns the value for a cell: a string without quotes, a number with the same digits, "" for null, or compact
// JSON for an array or object.
func (f *field) text() string {
	var s string
	var compact bytes.Buffer
	switch {
	case f.key == wholeKey && !json.Valid(f.value):
		return string(f.value)
	case string(bytes.TrimSpace(f.value)) == "null":
		return ""
	case json.Unmarshal(f.value, &s) == nil:
		return s
	case json.Compact(&compact, f.value) == nil:
		return compact.String()
	}
	return string(f.value)
}
