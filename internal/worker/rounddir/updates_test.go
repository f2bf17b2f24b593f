package rounddir

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/expect"
)

// allLines gets and accepts reports until nothing is left to report. It returns the lines of these reports.
func (d *Dir) allLines(t testing.TB, final bool) (lines []string) {
	t.Helper()
	for {
		r := d.News(final)
		expect.MustEqual(t, r.FirstUpdate, d.seen.updates.lines+1, "first … after", d.seen.updates.lines)
		bytes := 0
		for _, line := range r.Updates {
			bytes += len(line)
		}
		expect.MustTrue(t, len(r.Updates) <= updatesLines, len(r.Updates), "lines", bytes, "bytes at once")
		expect.MustTrue(t, bytes <= updatesRead, len(r.Updates), "lines", bytes, "bytes at once")
		lines = append(lines, r.Updates...)
		d.Accepted(r)
		if !r.More {
			return lines
		}
	}
}

func TestUpdates(t *testing.T) {
	d := plain(t)
	d.append(t, "updates", "one\n\ntwo\nthr")
	d.news(t, Report{Updates: []string{"one", "", "two"}})
	d.append(t, "updates", "ee\n")
	lost := d.news(t, Report{Updates: []string{"one", "", "two", "three"}})
	accepted := d.News(false)
	d.Accepted(accepted)
	d.Accepted(lost)
	d.news(t, Report{FirstUpdate: 5})
	d.append(t, "updates", "four\nfi")
	d.Accepted(d.news(t, Report{FirstUpdate: 5, Updates: []string{"four"}}))
	sameReport(t, d.News(true), Report{FirstUpdate: 6, Updates: []string{"fi"}})
	d.Accepted(d.News(true))
	sameReport(t, d.News(true), Report{FirstUpdate: 7})
}

func TestUpdatesAreText(t *testing.T) {
	long := strings.Repeat("x", updateBytes)
	for name, c := range map[string]struct{ text, want string }{
		"NUL, CR":      {"a\x00b\r", "a\x00b\r"},
		"no UTF-8":     {"a\xff\xfe b\xff", "a\uFFFD b\uFFFD"},
		"at the limit": {long, long},
		"over it":      {long + "y", long[:updateBytes-3] + "…"},
		"in a letter":  {long[:updateBytes-4] + "ää" + "y", long[:updateBytes-4] + "…"},
		"grows":        {strings.Repeat("\xffa", updateBytes/2), strings.Repeat("\uFFFDa", 1023) + "…"},
		"secret":       {"is hunter22.", "is ***."},
		"only secrets": {strings.Repeat("hunter22", 1000), strings.Repeat("***", updateBytes/8) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			d := create(t, Before{}, limits, secret(t, "hunter22"))
			d.append(t, "updates", c.text+"\nnext\n")
			d.news(t, Report{Updates: []string{c.want, "next"}})
		})
	}
}

// Updates of 10 MB arrive in small parts, without a gap, up to the limit.
func TestManyUpdates(t *testing.T) {
	d := create(t, Before{}, Limits{Updates: 1e6}, nil)
	var b strings.Builder
	var want []string
	for i := 0; b.Len() < 10e6; i++ {
		line := fmt.Sprintf("line %d", i)
		fmt.Fprintln(&b, line)
		if (i+1)*leastUpdate <= 1e6 { // each line counts as leastUpdate bytes, because each line is shorter
			want = append(want, line)
		}
	}
	d.write(t, "updates", b.String())
	b.Reset()
	want = append(want, "[updates end here: more than 1000000 bytes]")
	expect.Equal(t, cmp.Diff(want, d.allLines(t, false)), "")
	d.append(t, "updates", "one more\n")
	sameReport(t, d.News(true), Report{FirstUpdate: len(want) + 1})
}

func TestUpdatesLimit(t *testing.T) {
	for most, want := range map[int64][]string{
		2 * leastUpdate:   {"one", "two"},
		2*leastUpdate - 1: {"one", "[updates end here: more than 127 bytes]"},
		0:                 {"[updates end here: more than 0 bytes]"},
	} {
		d := create(t, Before{}, Limits{Updates: most}, nil)
		d.write(t, "updates", "one\ntwo\n")
		report := Report{Updates: want}
		if len(want[len(want)-1]) > 3 {
			report.Problems = []string{fmt.Sprintf("updates: more than %d bytes; the rest is left out", most)}
		}
		d.Accepted(d.news(t, report))
		d.news(t, Report{FirstUpdate: len(want) + 1})
	}
}

// If a line never ends, it is not read completely, and its beginning is not kept in memory.
func TestEndlessUpdate(t *testing.T) {
	d := create(t, Before{}, Limits{Updates: 10 << 20}, nil)
	d.write(t, "updates", "first\n")
	must(t, os.Truncate(d.in("updates"), 1<<40))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := d.News(false)
	runtime.ReadMemStats(&after)
	took := after.TotalAlloc - before.TotalAlloc
	expect.True(t, took <= 4*updatesRead, "one report took", took, "bytes")
	cut := strings.Repeat("\x00", updateBytes-3) + "…"
	expect.True(t, got.More, "the report says that there is no more to read")
	want := []string{"first", cut, "[updates end here: more than 10485760 bytes]"}
	expect.Equal(t, cmp.Diff(want, d.allLines(t, false)), "")
}

func TestLongUpdateComesInParts(t *testing.T) {
	d := create(t, Before{}, Limits{Updates: 10 << 20}, nil)
	part := strings.Repeat("x", 300<<10)
	cut := part[:updateBytes-3] + "…"
	d.append(t, "updates", part)
	expect.Equal(t, cmp.Diff([]string{cut}, d.allLines(t, false)), "")
	d.append(t, "updates", part)
	got := d.allLines(t, false)
	expect.True(t, got == nil, len(got), "lines")
	d.append(t, "updates", part+"\nnext\n")
	expect.Equal(t, cmp.Diff([]string{"next"}, d.allLines(t, false)), "")
}

func TestUpdatesReplaced(t *testing.T) {
	problem := []string{"updates: the file was emptied or replaced, and is read from its beginning; lines must be appended to it"}
	for name, again := range map[string]func(d *Dir, t testing.TB, name, text string){
		"emptied": (*Dir).write, "renamed": (*Dir).replace,
	} {
		t.Run(name, func(t *testing.T) {
			d := plain(t)
			d.write(t, "updates", "one\ntwo\n")
			d.Accepted(d.news(t, Report{Updates: []string{"one", "two"}}))
			again(d, t, "updates", "three\n")
			d.Accepted(d.news(t, Report{FirstUpdate: 3, Updates: []string{"three"}, Problems: problem}))
			again(d, t, "updates", "x\n")
			d.Accepted(d.news(t, Report{FirstUpdate: 4, Updates: []string{"x"}}))
		})
	}
}

// A stream stores updates as Redis does: it adds only the lines that it does not have yet.
type stream []string

func (s *stream) store(t rapid.TB, r Report) {
	for i, line := range r.Updates {
		switch at := r.FirstUpdate - 1 + i; {
		case at > len(*s):
			t.Fatalf("a gap before the %d-th, %q", at+1, line)
		case at == len(*s):
			*s = append(*s, line)
		case (*s)[at] != line:
			t.Fatalf("the %d-th is %q, and then %q", at+1, (*s)[at], line)
		}
	}
}

// Lines are written in random parts, and reports and answers are lost or late. Still, each line is stored once and in
// order.
func TestUpdatesHaveNoGaps(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		d := expect.Result(Create(dir+"/1", Before{}, nil, limits, nil)).Value(t)
		defer func() { must(t, d.Remove()) }()
		var stored, want stream
		var answers []Report
		rt.Repeat(map[string]func(*rapid.T){
			"write": func(rt *rapid.T) {
				line := rapid.StringMatching(`[a-z]{0,5}`).Draw(rt, "line")
				want = append(want, line)
				d.append(t, "updates", line[:len(line)/2])
				stored.store(rt, d.News(false))
				d.append(t, "updates", line[len(line)/2:]+"\n")
			},
			"report": func(rt *rapid.T) {
				r := d.News(false)
				stored.store(rt, r)
				answers = append(answers, r)
			},
			"answer": func(rt *rapid.T) {
				if len(answers) > 0 {
					d.Accepted(rapid.SampledFrom(answers).Draw(rt, "which"))
				}
			},
		})
		stored.store(rt, d.News(true))
		if diff := cmp.Diff(want, stored); diff != "" {
			rt.Fatal(diff)
		}
	})
}
