package secrets

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// mostEscaped is the largest length of a text of which all escapes are found. The search takes a time that grows with
// the square of this length if the text repeats itself, and so does the output of a program.
const mostEscaped = 1024

// escapeBytes is the largest length of the escape of one byte of a text.
const escapeBytes = len(`\u0000`)

// isEscaped reports whether a usual encoder of JSON writes the character as an escape: Go, Python, PHP, Java and .NET
// differ.
func isEscaped(r rune) bool {
	switch r {
	case '"', '\\', '/', '<', '>', '&', '\'', '=', '+', '`':
		return true
	}
	return r < ' ' || r > '~'
}

// matchEscaped returns the length of the text at the beginning of b if each of its characters is there, as it is or as
// an escape of JSON. It returns 0 if the text is not there, and more if b ends before this is known.
func matchEscaped(b []byte, text string) (n int, more bool) {
	for text != "" {
		switch {
		case n == len(b):
			return 0, true
		case b[n] != '\\':
			if b[n] != text[0] {
				return 0, false
			}
			n, text = n+1, text[1:]
			continue
		}
		r, size, more := unescape(b[n:])
		want, length := utf8.DecodeRuneInString(text)
		if more || r != want || size == 0 {
			return 0, more
		}
		n, text = n+size, text[length:]
	}
	return n, false
}

var shortEscapes = map[byte]rune{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape returns the character of the escape at the beginning of b, and the length of the escape. The length is 0 if
// there is none. It returns more if b ends before this is known.
func unescape(b []byte) (r rune, size int, more bool) {
	if len(b) < 2 {
		return 0, 0, true
	}
	if r, short := shortEscapes[b[1]]; short {
		return r, 2, false
	}
	r, more = codeUnit(b)
	if more || r < 0 || !utf16.IsSurrogate(r) {
		if r < 0 {
			return 0, 0, more
		}
		return r, escapeBytes, more
	}
	low, more := codeUnit(b[escapeBytes:])
	if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
		return pair, 2 * escapeBytes, false
	}
	return utf8.RuneError, escapeBytes, more
}

// codeUnit returns the number in an escape such as \u00e9, or -1 if there is none.
func codeUnit(b []byte) (unit rune, more bool) {
	const mark = `\u`
	for i, c := range []byte(mark) {
		if i == len(b) {
			return -1, true
		}
		if b[i] != c {
			return -1, false
		}
	}
	if len(b) < escapeBytes {
		return -1, true
	}
	n, err := strconv.ParseUint(string(b[len(mark):escapeBytes]), 16, 16)
	if err != nil {
		return -1, false
	}
	return rune(n), false
}
