package results

import (
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// Rows stay as they are, with their line ends and quotes, and get empty cells for new columns.
func TestEarlierRows(t *testing.T) {
	text := "id,a,base64\n1,\"x\r\ny\"\"\",\n2,\",\n\",\n3,\"\",a\n"
	e := expect.Result(newEarlier(strings.NewReader(text))).Value(t)
	names := e.join([]string{"id", "b", "a", "result.c", "base64"})
	expect.Equal(t, strings.Join(names, " "), "id a base64 b result.c")
	var out strings.Builder
	expect.NoError(t, e.copy(&out, len(names)))
	expect.Equal(t, out.String(), "1,\"x\r\ny\"\"\",,,\n2,\",\n\",,,\n3,\"\",a,,\n")
	expect.Equal(t, expect.Result(Count(strings.NewReader(text))).Value(t), int64(3))
	expect.Equal(t, expect.Result(Count(strings.NewReader(""))).Value(t), int64(0))
	for text, want := range map[string]string{
		"rate,mode\n":    "it has no results: its first column is not id",
		"id,a\n1,2\n3\n": "wrong number of fields",
		"id,a\n1,\"2":    `extraneous or missing "`,
	} {
		expect.Result(Count(strings.NewReader(text))).Fails(t, want)
	}
}
