package look

import (
	"bufio"
	"io"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// What is written comes out without a call of Flush, because the next row may be far away.
func TestPrompt(t *testing.T) {
	in, out := io.Pipe()
	p := &prompt{out: bufio.NewWriter(out)}
	for _, text := range []string{"first", "then"} {
		expect.Result(p.Write([]byte(text))).OK(t)
		got := make([]byte, 100)
		n := expect.Result(in.Read(got)).Value(t)
		expect.Equal(t, string(got[:n]), text)
	}
	expect.NoError(t, p.Flush())
}
