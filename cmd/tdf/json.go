package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// marshal returns the JSON of a value. Unlike json.Marshal, it does not escape characters for HTML.
func marshal(v any) ([]byte, error) {
	var b strings.Builder
	err := jsonLines(&b).Encode(v)
	return []byte(strings.TrimSuffix(b.String(), "\n")), err
}

// jsonLines returns an encoder that writes one value per line.
func jsonLines(w io.Writer) *json.Encoder {
	e := json.NewEncoder(controlEscaper{w})
	e.SetEscapeHTML(false)
	return e
}

// controlEscaper escapes U+007F to U+009F in JSON, so that no value controls the terminal. The JSON encoder escapes only the
// other control characters.
type controlEscaper struct{ w io.Writer }

func (e controlEscaper) Write(text []byte) (int, error) {
	if !bytes.ContainsAny(text, "\x7f\u0080\u0081\u0082\u0083\u0084\u0085\u0086\u0087\u0088\u0089\u008a\u008b\u008c\u008d\u008e\u008f"+
		"\u0090\u0091\u0092\u0093\u0094\u0095\u0096\u0097\u0098\u0099\u009a\u009b\u009c\u009d\u009e\u009f") {
		return e.w.Write(text)
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		if r >= 0x7f && r <= 0x9f {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	if _, err := e.w.Write(b.Bytes()); err != nil {
		return 0, err
	}
	return len(text), nil
}
