// Package resp reads version 2 of Redis's protocol (RESP 2). Its readers allocate memory for the bytes that arrive, not
// for the lengths that are announced, and refuse lengths above their limits.
package resp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/tdf-framework/tdf/internal/task"
)

// Limits are limits for the size of a request or reply.
type Limits struct {
	List     int  // maximum length of a list
	Bytes    int  // maximum length of a text; [Read] allows a frame this length in all its texts together
	Requests bool // Read accepts only requests: lists of at least one text
}

// An Error says why data violate the protocol or a limit. The reader cannot find the next request or reply.
type Error string

func (e Error) Error() string { return string(e) }

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (Error) Code() task.Code { return task.CodeUnavailable }

// A Frame is a whole request or reply.
type Frame struct {
	Raw   []byte
	Words []string // the texts; those of a request are the command and its arguments
}

// Read reads a request or a reply. The error is an [Error], or an error of the connection.
func Read(rd *bufio.Reader, most Limits) (Frame, error) {
	var raw bytes.Buffer
	var words []string
	for left := 1; left > 0; left-- {
		line, err := rd.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return Frame{}, Error("a line is too long")
		}
		if err != nil {
			return Frame{}, err
		}
		kind := line[0]
		length, err := most.header(line)
		if err != nil {
			return Frame{}, err
		}
		fits := kind == '$' && length >= 0
		if raw.Len() == 0 {
			fits = kind == '*' && length > 0
		}
		if most.Requests && !fits {
			return Frame{}, Error("a request is a list of at least one text")
		}
		raw.Write(line)
		if kind == '*' {
			left += max(length, 0)
		}
		if kind != '$' || length < 0 {
			continue
		}
		most.Bytes -= length
		begin := raw.Len()
		if _, err := io.CopyN(&raw, rd, int64(length)+2); err != nil {
			return Frame{}, err
		}
		word, whole := bytes.CutSuffix(raw.Bytes()[begin:], []byte("\r\n"))
		if !whole {
			return Frame{}, Error("a text does not have the announced length")
		}
		words = append(words, string(word))
	}
	return Frame{raw.Bytes(), words}, nil
}

// header returns the length in the first line of an element. The length of nil is -1, and that of an element which
// consists only of this line is 0.
func (most Limits) header(line []byte) (int, error) {
	limit := most.Bytes
	switch line[0] {
	case '+', '-', ':':
		return 0, nil
	case '*':
		limit = most.List
	case '$':
	default:
		return 0, Error(fmt.Sprintf("unknown type %q", line[0]))
	}
	digits, whole := bytes.CutSuffix(line[1:], []byte("\r\n"))
	if whole && string(digits) == "-1" {
		return -1, nil
	}
	n, err := strconv.ParseUint(string(digits), 10, 32)
	if !whole || err != nil {
		return 0, Error(fmt.Sprintf("invalid length after %q", line[0]))
	}
	if n > uint64(limit) {
		return 0, Error(fmt.Sprintf("the length after %q is %d: at most %d is allowed", line[0], n, limit))
	}
	return int(n), nil
}
