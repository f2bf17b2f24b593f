package look

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// write writes the view as text.
func (v *view) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "task %d: %s%s, round %d\n\n", v.ID, stateAt(v.Task, v.now), v.sinceText(), v.Round)
	v.writeFacts(&b, v.definition())
	for i := range v.Rounds {
		r := &v.Rounds[i]
		fmt.Fprintf(&b, "\nround %d: %s\n", r.Number, v.ending(r))
		v.writeFacts(&b, v.round(r))
		v.texts(&b, r)
	}
	if len(v.Log) > 0 {
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
			fmt.Fprintf(t, "  %s\t%s\n", f.name, strings.ReplaceAll(v.escape(f.value), "\n", "\n  \t"))
		}
	}
	t.Flush()
}

// escape escapes control characters, unless --raw is given.
func (v *view) escape(text string) string {
	if v.raw {
		return text
	}
	return format.Printable(text)
}

func (v *view) sinceText() string {
	if v.Entered.IsZero() {
		return ""
	}
	return fmt.Sprintf(" since %s (%s)", cli.Clock(v.Entered), format.Span(v.now.Sub(v.Entered)))
}

// definition returns the properties that differ from the defaults, and the counters.
func (v *view) definition() []fact {
	d, usual := v.Definition, task.Defaults("", "", "")
	unless := func(skip bool, text string) string {
		if skip {
			return ""
		}
		return text
	}
	facts := []fact{
		{"campaign", d.Group},
		{"program", d.Program},
		{"source", task.HideCredentials(d.Source)},
		{"handler", unless(d.Source != "", "required, because the task has no source")},
		{"queue", d.Queue},
		{"priority", unless(*d.Priority == 0, format.Number(*d.Priority))},
		{"tags", strings.Join(d.Tags, ", ")},
		{"limit key", d.LimitKey},
		{"after", dependenciesText(d.After)},
		{"after any", dependenciesText(d.AfterAny)},
		{"input", d.Label()},
		{"input replaced", unless(!v.InputReplaced, "yes: the parameters in the meta are those of an earlier input")},
		{"meta", d.Meta},
		{"start after", cli.Clock(d.StartAfter)},
		{"end before", unless(d.EndBefore.Equal(manager.NoEnd()), cli.Clock(d.EndBefore))},
		{"claim before", unless(d.ClaimBefore.Equal(manager.NoEnd()), cli.Clock(d.ClaimBefore))},
		{"timeout", unless(d.Timeout == manager.NoTimeout, task.For(d.Timeout).String()+" s")},
		{"fails", unless(v.Fails+*d.MaxFails == 0, countText(v.Fails, *d.MaxFails))},
		{"timeouts", unless(v.Timeouts+*d.MaxTimeouts == 0, countText(v.Timeouts, *d.MaxTimeouts))},
		{"losses", unless(v.Losses == 0 && *d.MaxLosses == usual.MaxLosses, countText(v.Losses, *d.MaxLosses))},
		{"back-off", unless(*d.Backoff == 0, backoffText(d))},
		{"keep finished", unless(*d.KeepFinished == manager.KeepForever, format.Span(*d.KeepFinished))},
		{"keep archived", unless(*d.KeepArchived == manager.KeepForever, format.Span(*d.KeepArchived))},
		{"keep outputs", unless(*d.KeepOutputs == manager.KeepForever, format.Span(*d.KeepOutputs))},
		{"unique key", unless(d.Unique == "", d.Unique+", until it is "+string(d.UniqueUntil))},
		{"releases", unless(v.Releases == 0, releasesText(v.Task.Stored()))},
		{"retries", unless(v.Reopens == 0, format.Number(v.Reopens))},
		{"changes", unless(v.Revision == 0, format.Number(v.Revision))},
		{"fail on", unless(d.FailOn == usual.FailOn, string(d.FailOn))},
		{"not on", strings.Join(v.NotOn, ", ")},
		{"checkpoint", unless(v.Checkpoint == "", format.Size(int64(len(v.Checkpoint))))},
		{"updates", v.updatesText()},
	}
	properties := d.Properties(usual)
	for i := range task.PropertyTable { // the properties that have no line above
		if p := &task.PropertyTable[i]; !slices.Contains(shownAbove, p.Name) && p.Shown(&properties) {
			facts = append(facts, fact{strings.ReplaceAll(p.Name, "_", " "), p.Text(&properties)})
		}
	}
	return facts
}

// shownAbove names the properties for which definition has a line of its own.
var shownAbove = strings.Fields(`group program source queue priority tags limit_key input meta start_after end_before claim_before timeout max_fails max_timeouts
	max_losses backoff backoff_factor backoff_max keep_finished keep_archived keep_outputs unique unique_until fail_on`)

// shownDependencies is the largest number of dependencies that tdf show names.
const shownDependencies = 20

func dependenciesText(d *manager.Dependencies) string {
	if d == nil {
		return ""
	}
	var parts []string
	for i, id := range d.Tasks {
		if i == shownDependencies {
			parts = append(parts, fmt.Sprintf("… (%d tasks)", len(d.Tasks)))
			break
		}
		parts = append(parts, fmt.Sprint(id))
	}
	if d.Group != "" {
		parts = append(parts, "campaign "+d.Group)
	}
	return strings.Join(parts, ", ")
}

func countText(n, allowed int) string { return fmt.Sprintf("%d (%d allowed)", n, allowed) }

func backoffText(d manager.Definition) string {
	return fmt.Sprintf("%s, then %v times as long each time, at most %s", format.Span(*d.Backoff), d.BackoffFactor,
		format.Span(d.BackoffMax))
}

func releasesText(t *task.Task) string {
	if t.UnfitHosts == 0 {
		return format.Number(t.Releases)
	}
	return fmt.Sprintf("%d (%d because the host was unfit)", t.Releases, t.UnfitHosts)
}

func (v *view) updatesText() string {
	switch {
	case v.updates == 0:
		return ""
	case len(v.last) == 0: // another program has written an entry with the id of no update
		return format.Number(v.updates)
	}
	last := v.last[0]
	ago := format.Span(v.now.Sub(last.Time))
	return fmt.Sprintf("%d, the last one %s ago: %s", v.updates, ago, format.OneLine(last.Line, 200))
}

// ending describes how a round ended.
func (v *view) ending(r *manager.Round) string {
	switch {
	case !r.TimedOut.IsZero():
		return "timed out"
	case !r.Lost.IsZero():
		return "lost with its worker"
	case !r.Failed.IsZero():
		return "failed"
	case r.Number < v.Round:
		return "released, requeued or retried"
	}
	return format.StateText(v.Task)
}

// round returns the facts about a round.
func (v *view) round(r *manager.Round) []fact {
	return []fact{
		{"opened", cli.Clock(r.Entered[task.Open])},
		{"worker", v.workerText(r)},
		{"started", cli.Clock(r.Started)},
		{"ended", cli.Clock(r.Ended)},
		{"exit", r.Exit},
		{"took", tookText(r)},
		{"memory", memoryText(r)},
		{"asked for", v.askedFor(r)},
		{"files", filesText(r.Files)},
		{"program hash", r.ProgramSHA256},
		{"progress", progressText(r.Progress)},
		{"last output", v.lastOutput(r)},
		{"follow-ups", followUpsText(r.FollowUps)},
		{"outputs", removedText(r)},
	}
}

// followUpsText returns the ids of the tasks that a round has opened.
func followUpsText(r task.IDRange) string {
	switch r.First {
	case 0:
		return ""
	case r.Last:
		return fmt.Sprintf("task %d", r.First)
	}
	return fmt.Sprintf("tasks %d to %d", r.First, r.Last)
}

// workerText returns the worker of a round. For a running round, it adds the host and the process id.
func (v *view) workerText(r *manager.Round) string {
	text := r.Worker
	if text == "" || r.Number != v.Round || v.State != task.Running {
		return text
	}
	switch w := v.worker; {
	case w == nil:
		text += " (unknown)"
	case !w.Alive:
		text += fmt.Sprintf(" on %s (silent for %s)", w.Host, format.Span(v.now.Sub(w.Seen)))
	default:
		text += " on " + w.Host
	}
	return text
}

// lastOutput returns the time since the last output of the running round.
func (v *view) lastOutput(r *manager.Round) string {
	if r.Number != v.Round || v.State != task.Running {
		return ""
	}
	if r.LastOutput.IsZero() {
		return "none yet"
	}
	return format.Span(v.now.Sub(r.LastOutput)) + " ago"
}

// tookText returns the run time and the CPU time of a round.
func tookText(r *manager.Round) string {
	if r.RunTime == 0 {
		return ""
	}
	return fmt.Sprintf("%s s, CPU %s s", format.Seconds(r.RunTime), format.Seconds(max(r.CPUTime, time.Millisecond)))
}

// askedFor returns what the task asks for, beside what its round took.
func (v *view) askedFor(r *manager.Round) string {
	if r.RunTime == 0 {
		return ""
	}
	return v.Definition.Resources
}

func memoryText(r *manager.Round) string {
	if r.MaxRSS == 0 {
		return ""
	}
	return format.Size(r.MaxRSS)
}

// filesText says how many files the round has brought back.
func filesText(f *task.Files) string {
	switch {
	case f == nil:
		return ""
	case f.Kept != "":
		return "not brought back: " + f.Kept
	}
	return format.Counted(f.Count, "file") + ", " + format.Size(f.Bytes)
}

// removedText says that keep_outputs has removed the outputs of the round. It returns "" if it has not.
func removedText(r *manager.Round) string {
	if r.OutputsRemoved.IsZero() {
		return ""
	}
	return removedAt(r.OutputsRemoved)
}

func removedAt(t time.Time) string { return "removed at " + cli.Clock(t) + ", because of keep_outputs" }

func progressText(p *task.Progress) string {
	if p == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%.0f %% %s", 100*p.Fraction, p.Text))
}

// texts writes the first lines of a round's output, error and result.
func (v *view) texts(w io.Writer, r *manager.Round) {
	v.head(w, "output", r.Output, r.OutputBytes, fmt.Sprintf("tdf output %d --round %d", v.ID, r.Number))
	v.head(w, "error", r.Error, max(r.ErrorBytes, int64(len(r.Error))), fmt.Sprintf("tdf output %d --round %d --error",
		v.ID, r.Number))
	v.head(w, "result", r.Result, int64(len(r.Result)), fmt.Sprintf("tdf show %d --json", v.ID))
	if tail := strings.TrimRight(r.Tail, "\n"); tail != "" {
		lines := strings.Split(tail, "\n")
		fmt.Fprintf(w, "  last lines\n%s\n",
			indented(v.escape(strings.Join(lines[max(0, len(lines)-headLines):], "\n"))))
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
	fmt.Fprintf(w, "  %s, %s", name, format.Size(bytes))
	if len(head) < len(text) {
		fmt.Fprintf(w, " (whole: %s)", whole)
	}
	fmt.Fprintf(w, "\n%s\n", indented(v.escape(strings.TrimRight(head, "\n"))))
}

func indented(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }

// logText returns the log with times in the local time zone.
func (v *view) logText() string {
	lines := slices.Clone(v.Log)
	for i, line := range lines {
		moment, rest, _ := strings.Cut(line, " ")
		if t, err := task.ParseTime(moment); err == nil {
			lines[i] = cli.Clock(t.Std()) + " " + rest
		}
	}
	return v.escape(strings.Join(lines, "\n"))
}
