package redistest

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A frame is a complete command, reply or message of the Redis protocol (RESP2 or RESP3).
type frame struct {
	raw   []byte   // the bytes as received
	words []string // all strings in the frame, in order; the strings of a command are its name and its arguments
}

// readFrame reads a frame of any kind.
func readFrame(r *bufio.Reader) (frame, error) {
	var f frame
	err := f.readValue(r)
	return f, err
}

// isPush reports whether f is a message of RESP3 that is not a reply.
func (f *frame) isPush() bool { return f.raw[0] == '>' }

func (f *frame) readValue(r *bufio.Reader) error {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	f.raw = append(f.raw, line...)
	text := strings.TrimSpace(string(line[1:]))
	switch line[0] {
	case '$', '=', '!': // strings and errors with a length
		return f.readString(r, text)
	case '*', '~', '>':
		return f.readValues(r, text, 1)
	case '%':
		return f.readValues(r, text, 2)
	case '|': // attributes, which precede the value that they describe
		if err := f.readValues(r, text, 2); err != nil {
			return err
		}
		return f.readValue(r)
	default: // a scalar, or a command that a person typed
		f.words = append(f.words, strings.Fields(string(line))...)
		return nil
	}
}

func (f *frame) readString(r *bufio.Reader, length string) error {
	n, err := strconv.Atoi(length)
	if err != nil {
		return fmt.Errorf("not the Redis protocol: length %q", length)
	}
	if n < 0 { // RESP2's nil
		return nil
	}
	text := make([]byte, n+len("\r\n"))
	if _, err := io.ReadFull(r, text); err != nil {
		return err
	}
	f.raw = append(f.raw, text...)
	f.words = append(f.words, string(text[:n]))
	return nil
}

// readValues reads a number of values: the product of the parameters count and per. In RESP2, the count of a nil array
// is -1.
func (f *frame) readValues(r *bufio.Reader, count string, per int) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return fmt.Errorf("not the Redis protocol: count %q", count)
	}
	for range n * per {
		if err := f.readValue(r); err != nil {
			return err
		}
	}
	return nil
}
