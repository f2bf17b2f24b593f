package task

import (
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// No pattern leads out of the directory, and their number and size are bounded.
func TestPatternsOfFetch(t *testing.T) {
	row := property(fieldFetch)
	for text, reason := range map[string]string{
		"out/*.csv, log":          "",
		"a/**/b,[a-z]?":           "",
		"":                        "",
		"/etc/passwd":             "is absolute",
		"../x":                    "has an empty element, . or ..",
		"a/../../x":               "has an empty element, . or ..",
		"./x":                     "has an empty element, . or ..",
		"a//b":                    "has an empty element, . or ..",
		"a/":                      "has an empty element, . or ..",
		"a,,b":                    "is empty",
		"[a":                      "is no pattern",
		"a\\":                     "is no pattern",
		"a[b/c]":                  "has a / between [ and ]",
		"a\nb":                    "contains a control character",
		"\xff":                    "is not UTF-8",
		strings.Repeat("x,", 17):  "at most 16",
		strings.Repeat("x", 1025): "at most 1024",
	} {
		d := usual
		err := row.Set(&d, text)
		if reason == "" {
			expect.NoError(t, err, text)
		} else {
			expect.Fails(t, err, reason, text)
		}
	}
	d := Definition{Program: "p", Source: "exec:", Fetch: []string{"a,b"}}
	properties := d.Properties(usual)
	expect.Fails(t, properties.Validate(), "contains a comma")
}

// A round must not fetch files that others have left in a directory, and workers that do not know the property do not
// claim the task.
func TestFetchNeedsADirectoryOfTheRound(t *testing.T) {
	for source, wrong := range map[string]bool{"exec:": false, "exec:/home/x": true, "": false, "rsync:/p/run.sh": false} {
		d := Defaults("p", source, "")
		d.Fetch = []string{"out/*"}
		err := d.Validate()
		if wrong {
			expect.Fails(t, err, "fetch: a command in /home/x leaves its files there")
			continue
		}
		expect.NoError(t, err, source)
		expect.NotEqual(t, d.Place(), "", source)
	}
}

// A regular expression is limited before it is compiled.
func TestRegexps(t *testing.T) {
	t.Parallel()
	for text, reason := range map[string]string{
		"": "", `Error: (\w+) at line \d{1,5}`: "", `\pL+|(?i)timeout`: "", strings.Repeat("(a|b)", 40): "",
		strings.Repeat("x", 201): "longer than 200 bytes", "(": "no regular expression", "(?:" + strings.Repeat(".?", 90) + "){1000}b": "repeats too much",
		"((a{9}){9}){9}": "repeats too much", "a{301}": "repeats too much", "a{300,}b": "repeats too much", "((a{50}){50}){50}": "no regular expression",
	} {
		_, err := ParseRegexp(text)
		if reason == "" {
			expect.NoError(t, err, text)
		} else {
			expect.Fails(t, err, reason, text)
		}
	}
	long := strings.Repeat("*a", 4<<20)
	expect.Fails(t, (&Query{Program: long}).Validate(), "more than 1024 bytes")
	expect.Fails(t, (&Query{FailureBy: long}).Validate(), "longer than 200 bytes")
	expect.Fails(t, (&Query{Outcomes: make([]string, 1001)}).Validate(), "at most 1000")
}
