package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/internal/stdtime"
)

func newShow(a *app) *cobra.Command {
	asJSON, raw := false, false
	c := &cobra.Command{
		Use: "show ID…", Short: "Show all there is to know about tasks",
		Long: "Shows tasks: what they are to do, where they stand, their rounds with what these cost and the first lines that they printed, and\n" +
			"the log. Of what runs now, where it does, and when it printed something last.",
		Example: "  tdf show 17",
		Args:    someArguments("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			m, err := a.manager(c.Context())
			if err != nil {
				return err
			}
			defer m.Close()
			return a.show(c.Context(), m, ids, asJSON, raw)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "a JSON object a line, with all that was printed")
	c.Flags().BoolVar(&raw, "raw", false, "texts as they are, though they may do things to the terminal")
	return c
}

// show shows the tasks, also behind one that is not there; the error is about the last one that is not.
func (a *app) show(ctx context.Context, m *client, ids []int64, asJSON, raw bool) error {
	var missing error
	shown := 0
	for _, id := range ids {
		v, err := a.view(ctx, m, id)
		if errors.Is(err, tdf.ErrNoTask) {
			if missing != nil {
				a.say("tdf: %v", missing)
			}
			missing = err
			continue
		}
		if err != nil {
			return err
		}
		v.raw = raw
		if shown > 0 && !asJSON {
			fmt.Fprintln(a.stdout)
		}
		if err := a.showOne(v, asJSON); err != nil {
			return err
		}
		shown++
	}
	return missing
}

func (a *app) showOne(v *view, asJSON bool) error {
	if asJSON {
		return jsonLines(a.stdout).Encode(v.json())
	}
	return v.write(a.stdout)
}

// A view is a task, and what else there is to say about it.
type view struct {
	*tdf.Task
	now     tdf.Time
	updates []admin.Update
	worker  *admin.Worker // that has it now; nil: none, or it is not known
	raw     bool
}

const mostUpdates = 10_000 // that are counted

func (a *app) view(ctx context.Context, m *client, id int64) (*view, error) {
	t, err := a.task(ctx, m, id)
	if err != nil {
		return nil, err
	}
	v := &view{Task: t}
	if v.now, err = m.now(ctx); err != nil {
		return nil, err
	}
	if v.updates, err = m.admin().Updates(ctx, id, admin.Update{}, mostUpdates); err != nil {
		return nil, err
	}
	if t.State != tdf.Running {
		return v, nil
	}
	workers, err := m.admin().Workers(ctx)
	if i := slices.IndexFunc(workers, func(w admin.Worker) bool { return w.Name == t.Current().Worker }); i >= 0 {
		v.worker = &workers[i]
	}
	return v, err
}

// task reads one; where there is none, the error says which there are.
func (a *app) task(ctx context.Context, m *client, id int64) (*tdf.Task, error) {
	t, err := m.task(ctx, id)
	if errors.Is(err, tdf.ErrNoTask) {
		err = a.noTask(ctx, m, id)
	}
	return t, err
}

// noTask returns an error that says why an id names no task: mostly a [missingTask].
func (a *app) noTask(ctx context.Context, m *client, id int64) error {
	last, err := m.admin().LastID(ctx)
	if err != nil {
		return err
	}
	if _, err := m.task(ctx, id); err == nil {
		return missingTask(fmt.Sprintf("read task %d: its hash has no state and no program; tdf show %d prints what it has, tdf check looks for damage", id, id))
	}
	switch {
	case last == 0:
		return missingTask(fmt.Sprintf("there is no task %d: no task was ever opened in this namespace", id))
	case id > last:
		return missingTask(fmt.Sprintf("there is no task %d: the last id given out is %d", id, last))
	}
	return missingTask(fmt.Sprintf("there is no task %d any more: it was removed (the last id given out is %d)", id, last))
}

// A missingTask is [tdf.ErrNoTask] in words for people.
type missingTask string

func (e missingTask) Error() string { return string(e) }
func (e missingTask) Unwrap() error { return tdf.ErrNoTask }

// write writes the view for people.
func (v *view) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "task %d: %s%s, round %d\n\n", v.ID, stateAt(v.Task, v.now), v.sinceText(), v.Round)
	v.table(&b, v.definition())
	for i := range v.Rounds.All() {
		fmt.Fprintf(&b, "\nround %d: %s\n", i, v.ending(i))
		v.table(&b, v.round(i))
		v.texts(&b, i)
	}
	if v.Log != "" {
		fmt.Fprintf(&b, "\nlog\n%s\n", indented(v.logText()))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// A fact is a line of a view; an empty value leaves it out.
type fact struct{ name, value string }

func (v *view) table(w io.Writer, facts []fact) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range facts {
		if f.value != "" {
			fmt.Fprintf(t, "  %s\t%s\n", f.name, strings.ReplaceAll(v.shown(f.value), "\n", "\n  \t"))
		}
	}
	t.Flush()
}

// shown is what may be written of a text to where it is written to.
func (v *view) shown(text string) string {
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
	return fmt.Sprintf(" since %s (%s)", clock(entered), ago(v.now.Sub(entered)))
}

// definition tells what differs from the defaults.
func (v *view) definition() []fact {
	d, plain := v.Properties, tdf.Defaults("", "", "")
	unless := func(usual bool, text string) string {
		if usual {
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
		{"end before", unless(d.EndBefore == plain.EndBefore, clock(d.EndBefore))},
		{"timeout", unless(d.Timeout == plain.Timeout, d.Timeout.String()+" s")},
		{"fails", unless(v.Fails+d.MaxFails == 0, ofForgiven(v.Fails, d.MaxFails))},
		{"timeouts", unless(v.Timeouts+d.MaxTimeouts == 0, ofForgiven(v.Timeouts, d.MaxTimeouts))},
		{"losses", unless(v.Losses == 0 && d.MaxLosses == plain.MaxLosses, ofForgiven(v.Losses, d.MaxLosses))},
		{"releases", unless(v.Releases == 0, releases(v.Task))},
		{"opened again", unless(v.Reopens == 0, strconv.Itoa(v.Reopens))},
		{"changed", unless(v.Revision == 0, strconv.Itoa(v.Revision))},
		{"fails by", unless(d.FailOn == plain.FailOn, string(d.FailOn))},
		{"not on", strings.Join(v.NotOn, ", ")},
		{"checkpoint", bytesText(int64(len(v.Checkpoint)))},
		{"updates", v.updatesText()},
	}
}

func ofForgiven(n, forgiven int) string { return fmt.Sprintf("%d (%d forgiven)", n, forgiven) }

func releases(t *tdf.Task) string {
	if t.UnfitHosts == 0 {
		return strconv.Itoa(t.Releases)
	}
	return fmt.Sprintf("%d (%d because of the worker's host)", t.Releases, t.UnfitHosts)
}

func (v *view) updatesText() string {
	n := len(v.updates)
	if n == 0 {
		return ""
	}
	last, count := v.updates[n-1], strconv.Itoa(n)
	if n == mostUpdates {
		count += " or more; the last of these"
	}
	return fmt.Sprintf("%s, %s ago: %s", count, ago(v.now.Sub(stdtime.TDF(last.Time))), oneLine(last.Line, 200))
}

// ending says in a word or two how a round ended.
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
		return "given back, or opened again"
	}
	return stateText(v.Task)
}

func (v *view) round(round int) []fact {
	r := v.Rounds.At(round)
	return []fact{
		{"opened", clock(r.Entered[tdf.Open])},
		{"worker", v.workerText(round)},
		{"started", clock(started(r))},
		{"ended", clock(endedAt(v.Task, round))},
		{"exit", r.Exit},
		{"took", tookText(r)},
		{"memory", bytesText(r.MaxRSS)},
		{"fetched", r.ProgramSHA256},
		{"progress", progressText(r.Progress)},
		{"last output", v.lastOutput(round)},
	}
}

// workerText says who ran the round, and of one that runs now on which host and as what process.
func (v *view) workerText(round int) string {
	text := v.Rounds.At(round).Worker
	if text == "" || round != v.Round || v.State != tdf.Running {
		return text
	}
	switch w := v.worker; {
	case w == nil:
		text += " (nothing is known of it)"
	case !w.Alive:
		text += fmt.Sprintf(" on %s (silent for %s)", w.Host, ago(v.now.Sub(stdtime.TDF(w.Seen))))
	default:
		text += " on " + w.Host
	}
	if pid := v.Rounds.At(round).PID; pid > 0 {
		text += fmt.Sprintf(", pid %d", pid)
	}
	return text
}

func (v *view) lastOutput(round int) string {
	if round != v.Round || v.State != tdf.Running {
		return ""
	}
	if last := v.Rounds.At(round).LastOutput; last > 0 {
		return ago(v.now.Sub(last)) + " ago"
	}
	return "none yet"
}

func tookText(r *tdf.Round) string {
	if r.Seconds == 0 {
		return ""
	}
	return fmt.Sprintf("%s s, CPU %s s", secondsText(r.Seconds), secondsText(max(r.CPUSeconds, 0.001)))
}

func progressText(p tdf.Progress) string {
	if p == (tdf.Progress{}) {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%.0f %% %s", 100*p.Fraction, p.Text))
}

// texts shows how what a round printed begins.
func (v *view) texts(w io.Writer, round int) {
	r := v.Rounds.At(round)
	v.head(w, "output", r.Output, r.OutputBytes, fmt.Sprintf("tdf output %d --round %d", v.ID, round))
	v.head(w, "error", r.Error, max(r.ErrorBytes, int64(len(r.Error))), fmt.Sprintf("tdf output %d --round %d --error", v.ID, round))
	v.head(w, "result", r.Result, int64(len(r.Result)), fmt.Sprintf("tdf show %d --json", v.ID))
	if tail := strings.TrimRight(r.Tail, "\n"); tail != "" {
		lines := strings.Split(tail, "\n")
		fmt.Fprintf(w, "  last printed\n%s\n", indented(v.shown(strings.Join(lines[max(0, len(lines)-headLines):], "\n"))))
	}
}

const headLines, headBytes = 10, 2000

func (v *view) head(w io.Writer, name, text string, bytes int64, whole string) {
	if text == "" {
		return
	}
	lines := strings.SplitAfter(text, "\n")
	head := strings.Join(lines[:min(len(lines), headLines)], "")
	head = head[:min(len(head), headBytes)]
	fmt.Fprintf(w, "  %s, %s", name, bytesText(bytes))
	if len(head) < len(text) {
		fmt.Fprintf(w, " (all of it: %s)", whole)
	}
	fmt.Fprintf(w, "\n%s\n", indented(v.shown(strings.TrimRight(head, "\n"))))
}

func indented(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }

// logText is the log with times that people can read.
func (v *view) logText() string {
	lines := strings.Split(v.Log, "\n")
	for i, line := range lines {
		moment, rest, _ := strings.Cut(line, " ")
		if t, err := tdf.ParseTime(moment); err == nil {
			lines[i] = clock(t) + " " + rest
		}
	}
	return v.shown(strings.Join(lines, "\n"))
}

// clock writes a moment for people, by the clock of where they are; "" for none.
func clock(t tdf.Time) string {
	switch {
	case t <= 0:
		return ""
	case t.Std().IsZero():
		return "never"
	}
	return t.Std().Local().Format("2006-01-02 15:04:05 MST")
}

// bytesText writes a size for people; "" for none.
func bytesText(n int64) string {
	switch {
	case n <= 0:
		return ""
	case n < 10_000:
		return fmt.Sprintf("%d bytes", n)
	case n < 10_000_000:
		return fmt.Sprintf("%.0f kB", float64(n)/1e3)
	case n < 10_000_000_000:
		return fmt.Sprintf("%.0f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.0f GB", float64(n)/1e9)
}
