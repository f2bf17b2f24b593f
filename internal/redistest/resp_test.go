package redistest

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestReadFrame(t *testing.T) {
	tests := map[string]struct {
		raw   string
		words []string
	}{
		"command":       {"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n", []string{"GET", "a\r\nb"}},
		"typed by hand": {"PING  hello\r\n", []string{"PING", "hello"}},
		"status":        {"+OK\r\n", []string{"+OK"}},
		"number":        {":17\r\n", []string{":17"}},
		"nil string":    {"$-1\r\n", nil},
		"nil array":     {"*-1\r\n", nil},
		"empty string":  {"$0\r\n\r\n", []string{""}},
		"empty array":   {"*0\r\n", nil},
		"nested":        {"*2\r\n*1\r\n$1\r\na\r\n$1\r\nb\r\n", []string{"a", "b"}},
		"map":           {"%1\r\n$1\r\na\r\n$1\r\nb\r\n", []string{"a", "b"}},
		"set":           {"~1\r\n$1\r\na\r\n", []string{"a"}},
		"push":          {">1\r\n$1\r\na\r\n", []string{"a"}},
		"verbatim":      {"=5\r\ntxt:a\r\n", []string{"txt:a"}},
		"attribute":     {"|1\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n", []string{"a", "b", "c"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := bufio.NewReader(strings.NewReader(test.raw + "+NEXT\r\n"))
			got, err := readFrame(r)
			must(t, err)
			expect.Equal(t, cmp.Diff([]string{test.raw, strings.Join(test.words, "|")},
				[]string{string(got.raw), strings.Join(got.words, "|")}), "")
			expect.Equal(t, string(expect.Result(io.ReadAll(r)).Value(t)), "+NEXT\r\n", "unread rest")
		})
	}
}

func TestReadInvalidFrame(t *testing.T) {
	for _, raw := range []string{"", "+OK", "$x\r\n", "*?\r\n", "$5\r\nabc", "*2\r\n+a\r\n", "|1\r\n+a\r\n+b\r\n"} {
		expect.Result(readFrame(bufio.NewReader(strings.NewReader(raw)))).Fails(t, "", raw, "was read as")
	}
}
