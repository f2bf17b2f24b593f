package dashboard

import (
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/tdf-framework/tdf/internal/expect"
)

// A line leads to the parameters with the names of its flags, and an invalid line says which word is wrong.
func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "/ui/tasks?column=id",
		" \t":                   "/ui/tasks?column=id",
		"7 12-40":               "/ui/tasks?column=id&id=7&id=12-40",
		"tdf ls --state failed": "/ui/tasks?column=id&state=failed",
		"--state failed,open --worker 'lab 1' --older-than 1h": "/ui/tasks?column=id&older-than=1h&state=failed&state=open&worker=lab+1",
		"--state=failed --state open":                          "/ui/tasks?column=id&state=failed&state=open",
		`--error-has "Memory  Error" --of simulate-*`:          "/ui/tasks?column=id&error-has=Memory++Error&of=simulate-%2A",
		"--oldest-first --limit 100 --worker ''":               "/ui/tasks?column=id&limit=100&order=oldest",
		"--oldest-first=false --worker --state":                "/ui/tasks?column=id&worker=--state",
		"--param a=1,2 --param 'b=x y'":                        "/ui/tasks?column=id&param=a%3D1%2C2&param=b%3Dx+y",
		"--":                                                   "/ui/tasks?column=id",
	} {
		got := expect.Result(addressOf(text, url.Values{"column": {"id"}, "state": {"open"}, "cursor": {"x"}})).Value(t)
		expect.Equal(t, got, want)
	}
	for text, want := range map[string]string{
		"--stat failed":               "unknown flag: --stat",
		"-x":                          "unknown shorthand flag: 'x' in -x",
		"--help":                      "unknown flag: --help",
		"--json":                      "unknown flag: --json",
		"--state":                     "flag needs an argument: --state",
		"--state faild":               `invalid state "faild"`,
		"--outcome cancelled,none":    `invalid outcome "none"`,
		"grid":                        `invalid id "grid"`,
		"0":                           `invalid id "0"`,
		"1-9999999":                   `invalid range "1-9999999"`,
		"--older-than soon":           `invalid older_than "soon"`,
		"--limit 7":                   "invalid value 7 for --limit: want 50, 100, 500",
		"--limit x":                   `"x"`,
		"--worker 'lab":               "a quote is not closed",
		"--exit 999":                  "999",
		"--<script>\u202e x":          `unknown flag: --<script>\u202e`,
		strings.Repeat("x", 1<<20):    "more than 8000 bytes",
		"--state \"\\\"\"":            "--state",
		strings.Repeat("1 ", 3999):    "",
		strings.Repeat("-", 5000):     "bad flag syntax",
		"--failure \x00 --owner \xff": "",
	} {
		got, err := addressOf(text, nil)
		switch {
		case err == nil && want != "":
			t.Errorf("%.100q leads to %.100q", text, got)
		case err != nil && (!strings.Contains(err.Error(), want) || len(err.Error()) > 2000):
			t.Errorf("%.100q: %.300v, want %s", text, err, want)
		}
	}
}

// Every parameter of a filter is a flag of the line, so that both have one state.
func TestFlagsOfTheLine(t *testing.T) {
	names := map[string]bool{"id": true}
	newLine().flags.VisitAll(func(f *pflag.Flag) { names[f.Name] = f.Name != "limit" && f.Name != oldestFirst })
	for _, name := range filterNames {
		expect.True(t, names[name], name, "is no flag")
		delete(names, name)
	}
	for name, isFilter := range names {
		expect.True(t, !isFilter, name, "is no parameter")
	}
	got := lineOf(url.Values{"id": {"7", "9-12"}, "param": {"a=1,2", "", "b=x y"}, "input-has": {"z"}, "state": {"failed open"}, "worker": {"it's"}, "order": {"oldest"}, "limit": {"500"}, "column": {"id"}, "cursor": {"x"}})
	expect.Equal(t, got, `--state failed,open --worker 'it'\''s' --param a=1,2 --param 'b=x y' --input-has z --limit 500 --oldest-first 7 9-12`)
}

// The line of an address leads back to its filter.
func FuzzLine(f *testing.F) {
	f.Add("state=failed,open&worker=it's&error-has=a%0Ab&id=7+9-12&order=oldest&limit=100")
	f.Add("param=a%3D1%2C2&param=b%3D+&param=&input-has=x")
	f.Add("campaign=%22&of=--x&exit=signal: killed&older-than=1h&failure=%00")
	f.Fuzz(func(t *testing.T, query string) {
		of, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		valid := filterOf(of)
		q, err := valid.Query(time.Time{})
		if q.Since, q.Before = (time.Time{}), (time.Time{}); err != nil || q.Validate() != nil || len(lineOf(of)) > maxLine {
			return
		}
		to := expect.Result(addressOf(lineOf(of), of)).Value(t)
		u := expect.Result(url.Parse(to)).Value(t)
		got, want := filterOf(u.Query()), filterOf(of)
		expect.True(t, sameFilter(got, want), query, lineOf(of), "leads to", got, "want", want)
	})
}

// sameFilter compares filters, and does not distinguish nil from empty.
func sameFilter(a, b filter) bool {
	for _, f := range []*filter{&a, &b} {
		f.IDs, f.States, f.Outcomes = append([]string{}, f.IDs...), append([]string{}, f.States...), append([]string{}, f.Outcomes...)
		f.Params = append([]string{}, f.Params...)
	}
	return reflect.DeepEqual(a, b)
}
