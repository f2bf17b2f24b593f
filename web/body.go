package web

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/pool"
)

// Bounds of the JSON in a body. With them, the values of a body need at most a few times as much memory as its text.
const (
	maxDepth  = 100
	maxValues = 2_000_000
)

// maxBodies is how many bytes the bodies of all calls may have together.
const maxBodies = 256 << 20

// checkShape returns a problem if the JSON in a body is not UTF-8, is too deep, or has too many values. It reads no
// values, so the text may be invalid JSON. The parser would accept other bytes, and replace them or keep them for a
// program that cannot read them.
func checkShape(body []byte) error {
	if !utf8.Valid(body) {
		return refuse(string(tdf.CodeInvalid), "the JSON of the body is not UTF-8")
	}
	depth, values, quoted := 0, 1, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++ // the next character does not end the string
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			if depth > maxDepth {
				return refuse(string(tdf.CodeInvalid), fmt.Sprintf("the JSON of the body is deeper than %d levels",
					maxDepth))
			}
		case c == '}' || c == ']':
			depth = max(0, depth-1)
		case c == ',' || c == '\n':
			values++
			if values > maxValues {
				return refuse(tooLarge, fmt.Sprintf("the body has more than %d values", maxValues))
			}
		}
	}
	return nil
}

// A share is the part of the memory for bodies that a call uses. The call must return it.
type share struct {
	of    *pool.Pool
	key   string // of the token
	taken int64
}

// read reads a body into memory. The error is a problem if there is no memory for it, or if the token has its share.
func (s *share) read(body io.Reader) ([]byte, error) { return io.ReadAll(&shareReader{body, s}) }

// readBody reads the body of a call. The error is a problem, and the connection then ends, because the rest of the body
// is not worth reading.
func (s *share) readBody(w http.ResponseWriter, r *http.Request, limit int64, longest time.Duration,
	kinds []string,
) (body []byte, err error) {
	callOf(r.Context()).body.mustEndIn(2 * longest)
	body, err = s.checked(http.MaxBytesReader(w, r.Body, limit), r, kinds)
	if err != nil {
		w.Header().Set("Connection", "close")
		return nil, bodyProblem(err)
	}
	return body, nil
}

// checked reads a body, and checks its type and its shape.
func (s *share) checked(from io.Reader, r *http.Request, kinds []string) ([]byte, error) {
	if err := checkType(r, kinds); err != nil {
		return nil, err
	}
	body, err := s.read(from)
	if err != nil || !slices.Contains(kinds, jsonKinds[0]) {
		return body, err
	}
	return body, checkShape(body)
}

func (s *share) giveBack() { s.of.Return(s.key, s.taken) }

type shareReader struct {
	io.Reader
	*share
}

func (r *shareReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if full := r.of.Take(r.key, int64(n)); full != nil {
		return 0, poolProblem(full)
	}
	r.taken += int64(n)
	return n, err
}
