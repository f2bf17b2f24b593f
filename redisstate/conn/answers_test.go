package conn

import (
	"errors"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// Answers that do not fit the calls of a connection are refused, however the network splits them, and before go-redis
// allocates memory for them.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const get, hmget, other, blpop = "*2\r\n$3\r\nget\r\n$1\r\nk\r\n", "*4\r\n$5\r\nHMGET\r\n$1\r\nk\r\n$1\r\na\r\n$1\r\nb\r\n", "*1\r\n$5\r\nother\r\n", "*3\r\n$5\r\nblpop\r\n$1\r\nk\r\n$1\r\n1\r\n"
	long := strings.Repeat("x", 100_000)
	for _, c := range []struct {
		calls, got string
		right      bool
	}{
		{get, "$1\r\nv\r\n", true},
		{get, "$-1\r\n", true},
		{get, "$0\r\n\r\n", true},
		{get, "-ERR no\r\n", true},
		{get + get, "$4\r\n$5\r\n\r\n$1\r\nv\r\n", true},
		{hmget, "*2\r\n$1\r\nv\r\n$-1\r\n", true},
		{blpop, "*-1\r\n", true},
		{other, "*2\r\n*2\r\n:1\r\n*0\r\n$6\r\n\r\n*9\r\n\r\n", true},
		{other, "$100000\r\n" + long + "\r\n", true},
		{get, ":5\r\n", false},
		{get, "*-1\r\n", false},
		{get, "$1\r\nv\r\n$1\r\nv\r\n", false},
		{hmget, "*1\r\n$1\r\nv\r\n", false},
		{hmget, "*-1\r\n", false},
		{blpop, "*0\r\n", false},
		{other, "*-1\r\n", false},
		{other, ">2\r\n", false},
		{other, "%1073741824\r\n", false},
		{other, "*1073741824\r\n", false},
		{other, "*1\r\n$1073741824\r\n", false},
		{other, "$-2\r\n", false},
		{other, "$x\r\n", false},
		{other, strings.Repeat("*1\r\n", 9), false},
		{other, "+" + long, false},
		{"", ":5\r\n", false},
	} {
		for _, piece := range []int{1, 3, 1 << 20} {
			a := newAnswers()
			err := passPieces(a, &a.sent, c.calls, piece)
			if err == nil {
				err = passPieces(a, &a.got, c.got, piece)
			}
			expect.Equal(t, err == nil, c.right, c.got, c.calls, piece)
			if err != nil {
				expect.True(t, errors.As(err, new(*answerError)), c.got, c.calls, piece, err)
			}
			if c.right {
				expect.Compare(t, len(a.calls)+len(a.got.lists)+a.got.rest, "<=", 0, c.got, c.calls, piece)
			}
		}
	}
}

func passPieces(a *answers, f *frames, data string, piece int) error {
	for data != "" {
		n := min(piece, len(data))
		if err := a.pass(f, []byte(data[:n])); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}
