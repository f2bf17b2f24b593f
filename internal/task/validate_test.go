package task

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/expect"
)

// Each case makes one property invalid. The error must name this property.
func TestValidateRefuses(t *testing.T) {
	for _, c := range []struct {
		property string
		change   func(*Properties)
		words    string
	}{
		{"program", func(d *Properties) { d.Program = "" }, "is empty"},
		{"program", func(d *Properties) { d.Program = "a/b" }, "slash"},
		{"program", func(d *Properties) { d.Program = `a\b` }, "slash"},
		{"program", func(d *Properties) { d.Program = ".." }, `begins with "."`},
		{"program", func(d *Properties) { d.Program = ".hidden" }, `begins with "."`},
		{"program", func(d *Properties) { d.Program = "-rf" }, `begins with "-"`},
		{"program", func(d *Properties) { d.Program = "a\x00b" }, "control character"},
		{"program", func(d *Properties) { d.Program = "a\nb" }, "control character"},
		{"program", func(d *Properties) { d.Program = "\xff" }, "UTF-8"},
		{"program", func(d *Properties) { d.Program = strings.Repeat("x", 201) }, "201 bytes"},
		{"source", func(d *Properties) { d.Source = "ftp://h/run.sh" }, `unknown scheme "ftp"`},
		{"source", func(d *Properties) { d.Source = "http://h/program.rar" }, "ending"},
		{"input", func(d *Properties) { d.Input = "'a" }, "quote is not closed"},
		{"input", func(d *Properties) { d.Input = `"a` }, "quote is not closed"},
		{"input", func(d *Properties) { d.Input = `a\` }, "backslash"},
		{"input", func(d *Properties) { d.Input = "a\x00" }, "NUL"},
		{"input", func(d *Properties) { d.Input = "a\nb" }, "line break"},
		{"input", func(d *Properties) { d.Input = strings.Repeat("x", 200_000) }, "200000 bytes"},
		{"start_after", func(d *Properties) { d.StartAfter = Time(math.NaN()) }, "NaN"},
		{"start_after", func(d *Properties) { d.StartAfter = -1 }, "-1"},
		{"start_after", func(d *Properties) { d.StartAfter = Never }, "inf"},
		{"end_before", func(d *Properties) { d.EndBefore = Time(math.NaN()) }, "NaN"},
		{"end_before", func(d *Properties) { d.StartAfter, d.EndBefore = 20, 10 }, "is not after start_after, 20"},
		{"end_before", func(d *Properties) { d.EndBefore = 0 }, "is not after start_after"},
		{"timeout", func(d *Properties) { d.Timeout = 0 }, "above 0"},
		{"timeout", func(d *Properties) { d.Timeout = -5 }, "above 0"},
		{"timeout", func(d *Properties) { d.Timeout = Seconds(math.NaN()) }, "above 0"},
		{"timeout", func(d *Properties) { d.Timeout = Seconds(math.Inf(-1)) }, "above 0"},
		{"max_fails", func(d *Properties) { d.MaxFails = -1 }, "-1 is not a whole number from 0"},
		{"max_fails", func(d *Properties) { d.MaxFails = 1_000_000_001 }, "1000000001 is not a whole number from 0 to 1000000000"},
		{"max_timeouts", func(d *Properties) { d.MaxTimeouts = -1 }, "-1"},
		{"max_losses", func(d *Properties) { d.MaxLosses = -1 }, "-1"},
		{"meta", func(d *Properties) { d.Meta = strings.Repeat("x", 4097) }, "4097 bytes"},
		{"meta", func(d *Properties) { d.Meta = "a\x00b" }, "NUL"},
		{"fail_on", func(d *Properties) { d.FailOn = "" }, "one of stderr, exit, any"},
		{"group", func(d *Properties) { d.Group = "a\tb" }, "control character"},
		{"backoff", func(d *Properties) { d.Backoff = -1 }, ""},
		{"backoff", func(d *Properties) { d.Backoff = MaxBackoff + 1 }, ""},
		{"backoff", func(d *Properties) { d.Backoff = Forever }, ""},
		{"backoff", func(d *Properties) { d.Backoff = Seconds(math.NaN()) }, ""},
		{"backoff_max", func(d *Properties) { d.BackoffMax = -1 }, ""},
		{"backoff_max", func(d *Properties) { d.BackoffMax = 0 }, ""},
		{"backoff_max", func(d *Properties) { d.BackoffMax = Forever }, ""},
		{"backoff_factor", func(d *Properties) { d.BackoffFactor = 0.5 }, ""},
		{"backoff_factor", func(d *Properties) { d.BackoffFactor = -2 }, ""},
		{"backoff_factor", func(d *Properties) { d.BackoffFactor = 1001 }, ""},
		{"backoff_factor", func(d *Properties) { d.BackoffFactor = math.Inf(1) }, ""},
		{"backoff_factor", func(d *Properties) { d.BackoffFactor = math.NaN() }, ""},
		{"keep_finished", func(d *Properties) { d.KeepFinished = 0 }, ""},
		{"keep_finished", func(d *Properties) { d.KeepFinished = -1 }, ""},
		{"keep_finished", func(d *Properties) { d.KeepFinished = Seconds(math.NaN()) }, ""},
		{"keep_finished", func(d *Properties) { d.KeepFinished = 1e12 }, ""},
		{"keep_archived", func(d *Properties) { d.KeepArchived = -1 }, ""},
		{"keep_archived", func(d *Properties) { d.KeepArchived = Seconds(math.NaN()) }, ""},
		{"keep_archived", func(d *Properties) { d.KeepArchived = Seconds(math.Inf(-1)) }, ""},
		{"keep_outputs", func(d *Properties) { d.KeepOutputs = 0 }, ""},
		{"keep_outputs", func(d *Properties) { d.KeepOutputs = -1 }, ""},
		{"keep_outputs", func(d *Properties) { d.KeepOutputs = Seconds(math.NaN()) }, ""},
		{"keep_outputs", func(d *Properties) { d.KeepOutputs = 1e12 }, ""},
		{"keep_outputs", func(d *Properties) { d.KeepOutputs = Seconds(math.Inf(-1)) }, ""},
		{"unique", func(d *Properties) { d.Unique = strings.Repeat("k", MaxName+1) }, ""},
		{"unique", func(d *Properties) { d.Unique = "a\nb" }, ""},
		{"unique", func(d *Properties) { d.Unique = "a\x00" }, ""},
		{"unique", func(d *Properties) { d.Unique = "\xff" }, ""},
		{"unique_until", func(d *Properties) { d.Unique, d.UniqueUntil = "k", "never" }, ""},
		{"unique_until", func(d *Properties) { d.Unique, d.UniqueUntil = "k", "" }, ""},
		{"queue", func(d *Properties) { d.Queue = "a\tb" }, `"a\tb" contains "\t"`},
		{"queue", func(d *Properties) { d.Queue = "a:3" }, `contains ":"`},
		{"queue", func(d *Properties) { d.Queue = strings.Repeat("ü", 65) }, "has 65 characters; at most 64"},
		{"queue", func(d *Properties) { d.Queue = "\xff" }, "UTF-8"},
		{"priority", func(d *Properties) { d.Priority = math.MaxInt32 + 1 }, "2147483648 is not a whole number"},
		{"priority", func(d *Properties) { d.Priority = math.MinInt32 - 1 }, "-2147483649 is not a whole number"},
		{"tags", func(d *Properties) { d.Tags = make([]string, 17) }, "17 tags; at most 16"},
		{"tags", func(d *Properties) { d.Tags = []string{"a", ""} }, "a tag is empty"},
		{"tags", func(d *Properties) { d.Tags = []string{"a,b"} }, "no commas"},
		{"tags", func(d *Properties) { d.Tags = []string{"a\x00b"} }, "no control characters"},
		{"tags", func(d *Properties) { d.Tags = []string{" a"} }, "no blanks at the ends"},
	} {
		d := Defaults("p", "rsync:/p/run.sh", "1")
		expect.NoError(t, d.Validate())
		c.change(&d)
		err := d.Validate()
		var wrong *PropertyError
		expect.MustTrue(t, errors.As(err, &wrong), c.property, err, "want", c.words)
		expect.Equal(t, wrong.Property, c.property, c.words)
		expect.Contains(t, err.Error(), c.words, c.property)
		expect.NotContains(t, err.Error(), "\n", c.property, c.words)
	}
}

// ParseTask returns the properties that OpenFields wrote.
func TestParseTaskReadsWhatOpeningWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Defaults("p", "rsync:/p/run.sh", rapid.StringMatching(`[a-z0-9 $;]*`).Draw(t, "input"))
		d.StartAfter = Time(rapid.Int64Range(0, 4e9).Draw(t, "start"))
		d.EndBefore = rapid.SampledFrom([]Time{Never, 5e9, 4e9 + 0.25}).Draw(t, "end")
		d.Timeout = rapid.SampledFrom([]Seconds{Forever, 0.5, 90}).Draw(t, "timeout")
		d.MaxFails, d.MaxTimeouts, d.MaxLosses = rapid.IntRange(0, 9).Draw(t, "f"), rapid.IntRange(0, 9).Draw(t, "t"), rapid.IntRange(0, 9).Draw(t, "l")
		d.Group, d.Meta = rapid.StringMatching(`[a-z]*`).Draw(t, "group"), strings.ReplaceAll(rapid.String().Draw(t, "meta"), "\x00", "")
		d.FailOn = rapid.SampledFrom([]FailOn{FailOnStderr, FailOnExit, FailOnAny}).Draw(t, "fail_on")
		h := Hash{}
		for _, f := range d.OpenFields("ns") {
			h[f.Name] = f.Value
		}
		got, err := ParseTask(3, h)
		if err != nil || !reflect.DeepEqual(got.Properties, d) || got.State != Open || got.Round != 0 {
			t.Fatalf("%+v, %v; want %+v", got, err, d)
		}
	})
}

func TestParseTaskReadsValidPropertiesOfAnInvalidTask(t *testing.T) {
	got, err := ParseTask(1, Hash{"state": "open", "round": "-3", "fails": "many", "program": "p", "source": "rsync:/p/run.sh", "0:open": "x", "0:output": "o"})
	var wrong *PropertyError
	expect.MustTrue(t, errors.As(err, &wrong), got, err)
	expect.Equal(t, wrong.Property, "round")
	expect.Equal(t, got.Round, 0)
	expect.Equal(t, got.Fails, 0)
	expect.Equal(t, got.LastOutput(), "o")
	for _, round := range []string{"99999999999", "100000", "1e3", "+1", " 1"} {
		if got, err := ParseTask(1, Hash{"state": "open", "round": round}); err == nil || got.Round != 0 {
			t.Errorf("round %q: %d, %v", round, got.Round, err)
		}
	}
}
