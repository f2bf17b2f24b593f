package resp

import "bytes"

// A Scanner checks the lengths in the replies on a connection before another reader gets them. This reader may then
// trust the lengths.
type Scanner struct {
	Limits

	begun bool
	line  []byte // the line whose end has not arrived
	rest  int    // bytes of a text that have not arrived, with the end of line after it
}

// NotRedis means that the first byte of a connection is no type of any version of Redis's protocol.
const NotRedis = Error("the peer does not speak Redis's protocol")

// Scan checks the next piece of the data. The error is an [Error].
func (s *Scanner) Scan(data []byte) error {
	for len(data) > 0 {
		if s.rest > 0 {
			n := min(s.rest, len(data))
			s.rest -= n
			data = data[n:]
			continue
		}
		if !s.begun && bytes.IndexByte([]byte("+-:$*_,#!=(%~|>"), data[0]) < 0 {
			return NotRedis
		}
		s.begun = true
		end := bytes.IndexByte(data, '\n') + 1
		if end == 0 {
			end = len(data)
		}
		s.line = append(s.line, data[:end]...)
		data = data[end:]
		if len(s.line) > 64<<10 {
			return Error("a line is too long")
		}
		if s.line[len(s.line)-1] != '\n' {
			return nil
		}
		length, err := s.header(s.line)
		if err != nil {
			return err
		}
		if s.line[0] == '$' && length >= 0 {
			s.rest = length + len("\r\n")
		}
		s.line = s.line[:0]
	}
	return nil
}
