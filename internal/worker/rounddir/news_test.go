package rounddir

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

const progressProblem = "progress: its first line must be a number from 0 to 1 and, after a blank, a text"

func TestProgress(t *testing.T) {
	for line, want := range map[string]string{
		"0.42 two of five\n":              "0.42 two of five",
		"0.42":                            "0.42",
		"1\n0.5 another line":             "1",
		"0 \t  begun  \r\n":               "0 begun",
		" \t.5\tx":                        "0.5 x",
		"+1e-1 x":                         "0.1 x",
		"-0 x":                            "0 x",
		"1e-300":                          "0",
		"0.123456789":                     "0.123457",
		"0.5 a\x00b\x1b[2Jc\x7f":          "0.5 a b [2Jc",
		"0.5 \xff\xfe!":                   "0.5 \uFFFD\uFFFD!",
		"0.5 " + strings.Repeat("x", 200): "0.5 " + strings.Repeat("x", 200),
		"0.5 " + strings.Repeat("x", 201): "0.5 " + strings.Repeat("x", 197) + "…",
		"0.5 " + strings.Repeat("ä", 999): "0.5 " + strings.Repeat("ä", 98) + "…",
		"0.5 password hunter22":           "0.5 password ***",
		"0.5 " + strings.Repeat("x", 194) + "hunter22": "0.5 " + strings.Repeat("x", 194) + "***",
		"":         "",
		"\n0.5\n":  "",
		"1.01":     progressProblem,
		"-0.1":     progressProblem,
		"NaN x":    progressProblem,
		"50% done": progressProblem,
		"half":     progressProblem,
		"\x00\xff": progressProblem,
	} {
		t.Run(line, func(t *testing.T) {
			d := create(t, Before{}, limits, secret(t, "hunter22"))
			d.write(t, "progress", line)
			report := Report{Progress: want, HasProgress: want != ""}
			if want == progressProblem {
				report = Report{Problems: []string{want}}
			}
			d.Accepted(d.news(t, report))
			d.news(t, Report{})
		})
	}
}

func TestProgressIsReportedUntilAccepted(t *testing.T) {
	d := plain(t)
	d.news(t, Report{})
	d.write(t, "progress", "0.1\n")
	d.news(t, Report{Progress: "0.1", HasProgress: true})
	old := d.News(false)
	d.write(t, "progress", "0.2\n")
	d.Accepted(d.news(t, Report{Progress: "0.2", HasProgress: true}))
	d.Accepted(old) // the answer to the old report came late, so the newer report stays
	d.news(t, Report{})
	d.write(t, "progress", "nonsense\n")
	d.news(t, Report{Problems: []string{progressProblem}})
	d.write(t, "progress", "more nonsense\n")
	d.news(t, Report{})
	d.write(t, "progress", "0.1\n")
	d.news(t, Report{Progress: "0.1", HasProgress: true})
}

// If a line never ends, only its beginning is read.
func TestProgressOfAnEndlessFile(t *testing.T) {
	d := plain(t)
	d.write(t, "progress", "0.5 x")
	must(t, os.Truncate(d.in("progress"), 1<<40))
	d.news(t, Report{Progress: "0.5 x", HasProgress: true})
}

// A program may leave another kind of entry in place of a file. The worker does not follow this entry, read it, or wait
// for it. The other files still count, and the problem is reported once.
func TestOddFiles(t *testing.T) {
	for _, name := range []string{"progress", "checkpoint", "updates"} {
		for kind, c := range odd {
			t.Run(name+" "+kind, func(t *testing.T) {
				d := create(t, Before{Checkpoint: []byte("before")}, limits, nil)
				d.write(t, "progress", "0.5")
				d.write(t, "updates", "one\n")
				must(t, os.Remove(d.in(name)))
				must(t, c.leave(d.in(name)))
				got := d.News(true)
				expect.MustLen(t, got.Problems, 1)
				expect.True(t, strings.HasPrefix(got.Problems[0], name+": "+c.want), "problems", got.Problems)
				got.Problems = nil
				want := Report{Progress: "0.5", HasProgress: true, Updates: []string{"one"}}
				switch name {
				case "progress":
					want.Progress, want.HasProgress = "", false
				case "updates":
					want.Updates = nil
				}
				sameReport(t, got, want)
				d.Accepted(got)
				sameReport(t, d.News(true), Report{FirstUpdate: 1 + len(want.Updates)})
			})
		}
	}
}

func TestNewsOfARemovedDirectory(t *testing.T) {
	d := create(t, Before{Checkpoint: []byte("before"), LastError: "x"}, limits, nil)
	d.write(t, "updates", "one\n")
	d.Accepted(d.News(false))
	must(t, os.RemoveAll(d.Path()))
	d.news(t, Report{FirstUpdate: 2})
	text, err := d.Result()
	expect.Equal(t, text, "")
	expect.NoError(t, err)
}

func TestCheckpoint(t *testing.T) {
	d := create(t, Before{Checkpoint: []byte("before")}, limits, secret(t, "hunter22"))
	d.news(t, Report{})
	d.replace(t, "checkpoint", "a\x00hunter22") // checkpoints are not masked, because the program gets them back
	want := Report{Checkpoint: []byte("a\x00hunter22")}
	d.news(t, want)
	d.Accepted(d.news(t, want))
	d.news(t, Report{})
	d.replace(t, "checkpoint", "a\x00hunter22") // a new file with the same content
	d.Accepted(d.news(t, Report{}))
	d.write(t, "checkpoint", "in place")
	d.Accepted(d.news(t, Report{Checkpoint: []byte("in place")}))
	must(t, os.Remove(d.in("checkpoint")))
	d.Accepted(d.news(t, Report{}))
	d.write(t, "checkpoint", "")
	d.Accepted(d.news(t, Report{Checkpoint: []byte{}}))
	d.news(t, Report{})
}

// If a file changes twice within a tick of the file system's clock, both changes are reported.
func TestCheckpointThatChangesAtOnce(t *testing.T) {
	d := plain(t)
	for i := range 200 {
		text := fmt.Sprintf("%03d", i)
		d.write(t, "checkpoint", text)
		d.Accepted(d.news(t, Report{Checkpoint: []byte(text)}))
	}
}

func TestCheckpointTooLarge(t *testing.T) {
	d := create(t, Before{Checkpoint: []byte("before")}, limits, nil)
	d.replace(t, "checkpoint", strings.Repeat("x", 101))
	d.Accepted(d.news(t, Report{Problems: []string{"checkpoint: 101 bytes, more than 100; the previous checkpoint stays"}}))
	must(t, os.Truncate(d.in("checkpoint"), 1<<40))
	d.Accepted(d.news(t, Report{}))
	d.replace(t, "checkpoint", strings.Repeat("x", 100))
	d.news(t, Report{Checkpoint: []byte(strings.Repeat("x", 100))})
}
