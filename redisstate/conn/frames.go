package conn

import (
	"bytes"
	"fmt"
	"math"
)

// frames reads the data of a connection in one direction, piece by piece, and finds the frames in it: calls, or answers
// of Redis. It passes over the contents of strings.
type frames struct {
	limits frameLimits
	begin  func(kind byte, length int) error // gets the type of each frame, and the length of its string or list
	word   func(word []byte)                 // gets the first string of each list that is a frame; may be nil

	header []byte // the beginning of a header whose end has not come
	rest   int    // bytes that are still to come of a string, with its line end
	lists  []int  // for each open list, the number of elements that are still to come
	first  bool   // the next string is the first of its frame
	cut    []byte // the beginning of this string
}

// frameLimits are maximum lengths.
type frameLimits struct{ line, text, list, depth int }

// longestWord is the number of bytes of a string that frames keeps for the function word.
const longestWord = 16

// pass reads the next piece of the data.
func (f *frames) pass(data []byte) error {
	for len(data) > 0 {
		if f.rest > 0 {
			n := min(f.rest, len(data))
			f.passText(data[:n])
			data = data[n:]
			continue
		}
		end := bytes.IndexByte(data, '\n') + 1
		header := data[:end]
		if end == 0 || len(f.header) > 0 {
			if end == 0 {
				end = len(data)
			}
			f.header = append(f.header, data[:end]...)
			header = f.header
		}
		data = data[end:]
		if len(header) > f.limits.line {
			return &answerError{reason: fmt.Sprintf("a line of an answer has more than %d bytes", f.limits.line)}
		}
		if header[len(header)-1] != '\n' {
			return f.checkKind(header[0])
		}
		if err := f.passHeader(header); err != nil {
			return err
		}
		f.header = f.header[:0]
	}
	return nil
}

// passText passes over bytes of a string.
func (f *frames) passText(text []byte) {
	if f.first {
		f.cut = append(f.cut, text[:min(len(text), longestWord-len(f.cut))]...)
	}
	if f.rest -= len(text); f.rest > 0 {
		return
	}
	if f.first {
		f.word(bytes.TrimSuffix(f.cut, []byte("\r\n")))
		f.first, f.cut = false, f.cut[:0]
	}
	f.end()
}

// end notes that an element has ended.
func (f *frames) end() {
	for i := len(f.lists) - 1; i >= 0; i-- {
		f.lists[i]--
		if f.lists[i] > 0 {
			return
		}
		f.lists = f.lists[:i]
	}
}

func (f *frames) passHeader(header []byte) error {
	kind, length := header[0], 0
	if err := f.checkKind(kind); err != nil {
		return err
	}
	if kind == '$' || kind == '*' {
		most := f.limits.text
		if kind == '*' {
			most = f.limits.list
		}
		if length = lengthIn(bytes.TrimSuffix(header[1:], []byte("\r\n"))); length == noLength || length > most {
			return &answerError{reason: fmt.Sprintf("the length of an answer is %.40q", header)}
		}
	}
	if len(f.lists) == 0 {
		if err := f.begin(kind, length); err != nil {
			return err
		}
		f.first = kind == '*' && f.word != nil
	}
	switch {
	case kind == '$' && length >= 0:
		f.rest = length + len("\r\n")
	case kind == '*' && length > 0:
		if len(f.lists) == f.limits.depth {
			return &answerError{reason: "an answer has too many lists in lists"}
		}
		f.lists = append(f.lists, length)
	default:
		f.end()
	}
	return nil
}

const noLength = -2

// lengthIn parses the length of a string or list. For a text that is no length, it returns noLength.
func lengthIn(text []byte) int {
	if string(text) == "-1" {
		return -1
	}
	n := 0
	for _, c := range text {
		if c < '0' || c > '9' || n > math.MaxInt32 {
			return noLength
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// checkKind returns an error if the first byte of a header is not a type of version 2 of Redis's protocol (RESP 2).
func (f *frames) checkKind(kind byte) error {
	switch kind {
	case '+', '-', ':', '$', '*':
		return nil
	}
	isRESP3 := bytes.IndexByte([]byte("_,#!=(%~|>"), kind) >= 0
	return &answerError{reason: fmt.Sprintf("an answer has the type %q", kind), notRedis: !isRESP3 && len(f.lists) == 0}
}
