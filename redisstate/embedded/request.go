package embedded

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// limits are limits for the size of a request.
type limits struct {
	args  int // maximum number of words
	bytes int // maximum size of all words together
}

var (
	// strangerLimits apply to a client that has not logged in.
	strangerLimits = limits{args: 10, bytes: 16 << 10}
	// clientLimits apply to all other clients. A real Redis has the same limits.
	clientLimits = limits{args: 1 << 20, bytes: 512 << 20}
)

// A protocolError says why a request is invalid. The front then closes the connection, because it cannot find the
// beginning of the next request.
type protocolError string

func (e protocolError) Error() string { return "ERR Protocol error: " + string(e) }

// readRequest reads a command and its arguments, an array of at least one bulk string. It allocates memory for the
// bytes that arrive, not for the length that the client announces. The error is a protocolError, or an error of the
// connection.
func readRequest(rd *bufio.Reader, most limits) ([]string, error) {
	count, err := readLength(rd, '*', most.args)
	if err != nil {
		return nil, err
	}
	if count == 0 {
		return nil, protocolError("an empty command")
	}
	const usual = 64
	args := make([]string, 0, min(count, usual))
	left := most.bytes
	for range count {
		length, err := readLength(rd, '$', left)
		if err != nil {
			return nil, err
		}
		left -= length
		arg, err := readBulk(rd, length)
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
	return args, nil
}

// readLength reads a line such as *3 or $12. The line consists of the letter and a number, which must not exceed the
// given maximum.
func readLength(rd *bufio.Reader, letter byte, most int) (int, error) {
	line, err := rd.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return 0, protocolError("a line is too long")
	case err != nil:
		return 0, err
	case line[0] != letter:
		return 0, protocolError(fmt.Sprintf("expected %q, got %q", letter, line[0]))
	}
	digits, ok := bytes.CutSuffix(line[1:], []byte("\r\n"))
	if !ok || len(digits) == 0 {
		return 0, protocolError(fmt.Sprintf("invalid length after %q", letter))
	}
	n := int64(0)
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, protocolError(fmt.Sprintf("invalid length after %q", letter))
		}
		if n = n*10 + int64(d-'0'); n > int64(most) {
			return 0, protocolError(fmt.Sprintf("the number after %q is too large: at most %d is allowed", letter,
				most))
		}
	}
	return int(n), nil
}

// readBulk reads a text with the given number of bytes, and the end of line after it.
func readBulk(rd *bufio.Reader, length int) (string, error) {
	const first = 64 << 10
	text := make([]byte, 0, min(length, first))
	for {
		had := len(text)
		text = text[:cap(text)]
		if _, err := io.ReadFull(rd, text[had:]); err != nil {
			return "", unexpected(err)
		}
		if len(text) == length {
			break
		}
		text = append(make([]byte, 0, min(length, 2*len(text))), text...)
	}
	end, err := rd.Peek(2)
	if err != nil {
		return "", unexpected(err)
	}
	if string(end) != "\r\n" {
		return "", protocolError("a bulk string does not have the announced length")
	}
	_, err = rd.Discard(2)
	return string(text), err
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
