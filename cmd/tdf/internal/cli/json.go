package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Marshal returns the JSON of a value. Unlike json.Marshal, it does not escape characters for HTML.
func Marshal(v any) ([]byte, error) {
	var b strings.Builder
	err := JsonLines(&b).Encode(v)
	return []byte(strings.TrimSuffix(b.String(), "\n")), err
}

// JsonLines returns an encoder that writes one value per line.
func JsonLines(w io.Writer) *json.Encoder {
	e := json.NewEncoder(controlEscaper{w})
	e.SetEscapeHTML(false)
	return e
}

// controlEscaper escapes unprintable characters in JSON, so that no value controls the terminal or hides a part of a text. The
// JSON encoder has already escaped the ASCII control characters below U+0020.
type controlEscaper struct{ w io.Writer }

func (e controlEscaper) Write(text []byte) (int, error) {
	if !bytes.ContainsFunc(text, escapedInJSON) {
		return e.w.Write(text)
	}
	var b []byte
	for _, r := range string(text) {
		if !escapedInJSON(r) {
			b = utf8.AppendRune(b, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			b = fmt.Appendf(b, `\u%04x`, unit)
		}
	}
	if _, err := e.w.Write(b); err != nil {
		return 0, err
	}
	return len(text), nil
}

func escapedInJSON(r rune) bool { return r > '~' && unprintable(r) }
