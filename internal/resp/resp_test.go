package resp

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/expect"
)

var wide = Limits{List: 1 << 20, Bytes: 1 << 20}

func TestRead(t *testing.T) {
	for raw, words := range map[string][]string{
		"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n": {"GET", "a\r\nb"},
		"+OK\r\n":                             nil,
		":17\r\n":                             nil,
		"$-1\r\n":                             nil,
		"*-1\r\n":                             nil,
		"$0\r\n\r\n":                          {""},
		"*0\r\n":                              nil,
		"*2\r\n*1\r\n$1\r\na\r\n$1\r\nb\r\n":  {"a", "b"},
	} {
		r := bufio.NewReader(strings.NewReader(raw + "+NEXT\r\n"))
		got := expect.Result(Read(r, wide)).Value(t)
		expect.Equal(t, cmp.Diff(Frame{[]byte(raw), words}, got), "")
		expect.Equal(t, string(expect.Result(io.ReadAll(r)).Value(t)), "+NEXT\r\n", "unread rest of", raw)
	}
	for _, raw := range []string{"", "+OK", "$x\r\n", "*?\r\n", "$5\r\nabc", "*2\r\n+a\r\n", "%1\r\n+a\r\n+b\r\n"} {
		expect.Result(Read(bufio.NewReader(strings.NewReader(raw)), wide)).Fails(t, "", raw, "was read as")
	}
}

// Lengths out of bounds are refused however the network splits them, and lengths in texts are not.
func TestScanner(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	for data, right := range map[string]bool{
		"$1\r\nv\r\n$-1\r\n$0\r\n\r\n-ERR no\r\n*-1\r\n": true,
		"*2\r\n*2\r\n:1\r\n*0\r\n$7\r\n\r\n*99\r\n\r\n":  true,
		"$100000\r\n" + long + "\r\n":                    true,
		"+" + long:                                       false,
		">2\r\n":                                         false,
		"%1073741824\r\n":                                false,
		"*11\r\n":                                        false,
		"*1\r\n$100001\r\n":                              false,
		"$-2\r\n":                                        false,
		"$x\r\n":                                         false,
		"$1\r\nv\r\nHTTP/1.1\r\n":                        false,
	} {
		for _, piece := range []int{1, 3, 1 << 20} {
			err := scanPieces(&Scanner{Limits: Limits{List: 10, Bytes: 100_000}}, data, piece)
			expect.Equal(t, err == nil, right, data, piece, err)
			expect.Equal(t, err != nil, errors.As(err, new(Error)), data, piece, err)
			expect.NotEqual(t, err, error(NotRedis), data, piece)
		}
	}
	expect.Equal(t, scanPieces(&Scanner{}, "HTTP/1.1\r\n", 1), error(NotRedis))
}

func scanPieces(s *Scanner, data string, piece int) error {
	for data != "" {
		n := min(piece, len(data))
		if err := s.Scan([]byte(data[:n])); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}
