package testlog_test

import (
	"io"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/testlog"
)

type output struct {
	testing.TB
	buffer *testlog.Buffer
}

func (o output) Output() io.Writer { return o.buffer }

func TestRepeatedMessages(t *testing.T) {
	o := output{t, new(testlog.Buffer)}
	log := testlog.Of(o)
	for i := range 60 {
		log.With("n", i).Warn("still waiting")
	}
	log.Info("other")
	expect.Equal(t, o.buffer.Count("still waiting"), 5)
	expect.Equal(t, o.buffer.Count("no more lines"), 1)
	expect.Equal(t, strings.Count(o.buffer.String(), "\n"), 6)
}
