package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/stdtime"
)

// write writes the view as text.
func (v *view) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "task %d: %s%s, round %d\n\n", v.ID, stateAt(v.Task, v.now), v.sinceText(), v.Round)
	v.writeFacts(&b, v.definition())
	for i := range v.Rounds.All() {
		fmt.Fprintf(&b, "\nround %d: %s\n", i, v.ending(i))
		v.writeFacts(&b, v.round(i))
		v.texts(&b, i)
	}
	if v.Log != "" {
		fmt.Fprintf(&b, "\nlog\n%s\n", indented(v.logText()))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// A fact is a line of tdf show: a name and a value. A fact without a value is not printed.
type fact struct{ name, value string }

// writeFacts writes the facts in two columns.
func (v *view) writeFacts(w io.Writer, facts []fact) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range facts {
		if f.value != "" {
			fmt.Fprintf(t, "  %s\t%s\n", f.name, strings.ReplaceAll(v.safe(f.value), "\n", "\n  \t"))
		}
	}
	t.Flush()
}

// safe escapes control characters, unless --raw is given.
func (v *view) safe(text string) string {
	if v.raw {
		return text
	}
	return printable(text)
}

func (v *view) sinceText() string {
	entered := v.Current().Entered[v.State]
	if entered == 0 {
		return ""
	}
	return fmt.Sprintf(" since %s (%s)", clock(entered), span(v.now.Sub(entered)))
}

// definition returns the properties that differ from the defaults, and the counters.
func (v *view) definition() []fact {
	d, usual := v.Properties, tdf.Defaults("", "", "")
	unless := func(skip bool, text string) string {
		if skip {
			return ""
		}
		return text
	}
	return []fact{
		{"campaign", d.Group},
		{"program", d.Program},
		{"source", tdf.HideCredentials(d.Source)},
		{"input", d.Input},
		{"meta", d.Meta},
		{"start after", unless(d.StartAfter == 0, clock(d.StartAfter))},
		{"end before", unless(d.EndBefore == usual.EndBefore, clock(d.EndBefore))},
		{"timeout", unless(d.Timeout == usual.Timeout, d.Timeout.String()+" s")},
		{"fails", unless(v.Fails+d.MaxFails == 0, countText(v.Fails, d.MaxFails))},
		{"timeouts", unless(v.Timeouts+d.MaxTimeouts == 0, countText(v.Timeouts, d.MaxTimeouts))},
		{"losses", unless(v.Losses == 0 && d.MaxLosses == usual.MaxLosses, countText(v.Losses, d.MaxLosses))},
		{"releases", unless(v.Releases == 0, releasesText(v.Task))},
		{"retries", unless(v.Reopens == 0, number(v.Reopens))},
		{"changes", unless(v.Revision == 0, number(v.Revision))},
		{"fail on", unless(d.FailOn == usual.FailOn, string(d.FailOn))},
		{"not on", strings.Join(v.NotOn, ", ")},
		{"checkpoint", unless(v.Checkpoint == "", size(int64(len(v.Checkpoint))))},
		{"updates", v.updatesText()},
	}
}

func countText(n, allowed int) string { return fmt.Sprintf("%d (%d allowed)", n, allowed) }

func releasesText(t *tdf.Task) string {
	if t.UnfitHosts == 0 {
		return number(t.Releases)
	}
	return fmt.Sprintf("%d (%d because the host was unfit)", t.Releases, t.UnfitHosts)
}

func (v *view) updatesText() string {
	n := len(v.updates)
	if n == 0 {
		return ""
	}
	last, count := v.updates[n-1], number(n)
	if n == maxUpdates {
		count = "the first " + count + "; the last of these"
	}
	return fmt.Sprintf("%s, %s ago: %s", count, span(v.now.Sub(stdtime.TDF(last.Time))), oneLine(last.Line, 200))
}

// ending says how a round ended.
func (v *view) ending(round int) string {
	r := v.Rounds.At(round)
	switch {
	case r.TimedOutAt > 0:
		return "timed out"
	case r.LostAt > 0:
		return "lost with its worker"
	case r.FailedAt > 0:
		return "failed"
	case round < v.Round:
		return "released, requeued or retried"
	}
	return stateText(v.Task)
}

// round returns the facts about a round.
func (v *view) round(round int) []fact {
	r := v.Rounds.At(round)
	return []fact{
		{"opened", clock(r.Entered[tdf.Open])},
		{"worker", v.workerText(round)},
		{"started", clock(started(r))},
		{"ended", clock(endedAt(v.Task, round))},
		{"exit", r.Exit},
		{"took", tookText(r)},
		{"memory", memoryText(r)},
		{"program hash", r.ProgramSHA256},
		{"progress", progressText(r.Progress)},
		{"last output", v.lastOutput(round)},
	}
}

// workerText returns the name of a round's worker. For a running round, it adds the host and the process id.
func (v *view) workerText(round int) string {
	text := v.Rounds.At(round).Worker
	if text == "" || round != v.Round || v.State != tdf.Running {
		return text
	}
	switch w := v.worker; {
	case w == nil:
		text += " (unknown)"
	case !w.Alive:
		text += fmt.Sprintf(" on %s (silent for %s)", w.Host, span(v.now.Sub(stdtime.TDF(w.Seen))))
	default:
		text += " on " + w.Host
	}
	if pid := v.Rounds.At(round).PID; pid > 0 {
		text += fmt.Sprintf(", pid %d", pid)
	}
	return text
}

// lastOutput returns the time since the last output of the running round.
func (v *view) lastOutput(round int) string {
	if round != v.Round || v.State != tdf.Running {
		return ""
	}
	if last := v.Rounds.At(round).LastOutput; last > 0 {
		return span(v.now.Sub(last)) + " ago"
	}
	return "none yet"
}

// tookText returns the run time and the CPU time of a round.
func tookText(r *tdf.Round) string {
	if r.Seconds == 0 {
		return ""
	}
	return fmt.Sprintf("%s s, CPU %s s", seconds(r.Seconds), seconds(max(r.CPUSeconds, 0.001)))
}

func memoryText(r *tdf.Round) string {
	if r.MaxRSS == 0 {
		return ""
	}
	return size(r.MaxRSS)
}

func progressText(p tdf.Progress) string {
	if p == (tdf.Progress{}) {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%.0f %% %s", 100*p.Fraction, p.Text))
}

// texts writes the first lines of a round's output, error and result.
func (v *view) texts(w io.Writer, round int) {
	r := v.Rounds.At(round)
	v.head(w, "output", r.Output, r.OutputBytes, fmt.Sprintf("tdf output %d --round %d", v.ID, round))
	v.head(w, "error", r.Error, max(r.ErrorBytes, int64(len(r.Error))), fmt.Sprintf("tdf output %d --round %d --error", v.ID, round))
	v.head(w, "result", r.Result, int64(len(r.Result)), fmt.Sprintf("tdf show %d --json", v.ID))
	if tail := strings.TrimRight(r.Tail, "\n"); tail != "" {
		lines := strings.Split(tail, "\n")
		fmt.Fprintf(w, "  last lines\n%s\n", indented(v.safe(strings.Join(lines[max(0, len(lines)-headLines):], "\n"))))
	}
}

const headLines, headBytes = 10, 2000

// head writes the first lines of a text, and the command that prints the whole text.
func (v *view) head(w io.Writer, name, text string, bytes int64, whole string) {
	if text == "" {
		return
	}
	lines := strings.SplitAfter(text, "\n")
	head := strings.Join(lines[:min(len(lines), headLines)], "")
	head = head[:min(len(head), headBytes)]
	fmt.Fprintf(w, "  %s, %s", name, size(bytes))
	if len(head) < len(text) {
		fmt.Fprintf(w, " (whole: %s)", whole)
	}
	fmt.Fprintf(w, "\n%s\n", indented(v.safe(strings.TrimRight(head, "\n"))))
}

func indented(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }

// logText returns the log with times in the local time zone.
func (v *view) logText() string {
	lines := strings.Split(v.Log, "\n")
	for i, line := range lines {
		moment, rest, _ := strings.Cut(line, " ")
		if t, err := tdf.ParseTime(moment); err == nil {
			lines[i] = clock(t) + " " + rest
		}
	}
	return v.safe(strings.Join(lines, "\n"))
}
