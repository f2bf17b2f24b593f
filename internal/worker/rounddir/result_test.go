package rounddir

import (
	"os"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestResult(t *testing.T) {
	for name, c := range map[string]struct{ text, want, err string }{
		"object":      {`{"a": [1, 2.5e3, null, "x"]}` + "\n", `{"a": [1, 2.5e3, null, "x"]}` + "\n", ""},
		"BOM":         {"\ufeff{}", "{}", ""},
		"number":      {" 42 ", " 42 ", ""},
		"at limit":    {`"` + strings.Repeat("x", 98) + `"`, `"` + strings.Repeat("x", 98) + `"`, ""},
		"secret":      {`{"token": "my hunter22"}`, `{"token": "my ***"}`, ""},
		"over limit":  {`"` + strings.Repeat("x", 99) + `"`, "", "result.json: 101 bytes, more than 100"},
		"empty":       {"", "", "result.json: it is empty"},
		"blank":       {" \n", "", "result.json: it is not JSON: unexpected end of JSON input (byte 2)"},
		"text":        {"sum=3", "", "result.json: it is not JSON: invalid character 's' looking for beginning of value (byte 1)"},
		"half":        {`{"a": `, "", "unexpected end of JSON input (byte 6)"},
		"two":         {`{} {}`, "", "invalid character '{' after top-level value (byte 4)"},
		"NaN":         {`[1, NaN]`, "", "invalid character 'N' looking for beginning of value (byte 5)"},
		"NUL":         {"{\x00}", "", `invalid character '\x00' looking for beginning of object key string (byte 2)`},
		"no UTF-8":    {"\"a\xffb\"", "", "result.json: it is not UTF-8 (byte 3)"},
		"UTF-16":      {"\xff\xfe{\x00}\x00", "", "result.json: it is not UTF-8 (byte 1)"},
		"bare secret": {`{"pin": 7654321}`, "", "result.json: it contains the value of a secret outside of a string"},
	} {
		t.Run(name, func(t *testing.T) {
			value := "hunter22"
			if name == "bare secret" {
				value = "7654321"
			}
			d := create(t, Before{}, limits, secret(t, value))
			d.write(t, "result.json", c.text)
			got, err := d.Result()
			if c.err != "" {
				contains(t, err, c.err)
			} else if err != nil {
				t.Error(err)
			}
			expect.Equal(t, got, c.want)
		})
	}
}

func TestResultTooDeep(t *testing.T) {
	d := create(t, Before{}, Limits{Result: 1 << 20}, nil)
	d.write(t, "result.json", strings.Repeat("[", 1<<20))
	_, err := d.Result()
	contains(t, err, "exceeded max depth (byte 10001)")
}

func TestNoResult(t *testing.T) {
	got, err := plain(t).Result()
	expect.Equal(t, got, "")
	expect.NoError(t, err)
}

func TestOddResult(t *testing.T) {
	for kind, c := range odd {
		t.Run(kind, func(t *testing.T) {
			d := plain(t)
			must(t, c.leave(d.in("result.json")))
			got, err := d.Result()
			contains(t, err, "result.json: "+c.want)
			expect.Equal(t, got, "")
		})
	}
}

func TestEndlessResult(t *testing.T) {
	d := plain(t)
	d.write(t, "result.json", "{}")
	must(t, os.Truncate(d.in("result.json"), 1<<40))
	_, err := d.Result()
	contains(t, err, "1099511627776 bytes, more than 100")
}
