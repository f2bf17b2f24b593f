package look

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// A watching holds the flags of tdf watch, and the state of its printing.
type watching struct {
	a         *cli.App
	all       *cli.Shards
	campaign  string
	untilDone bool
	follow    bool
	stopAfter int64
	interval  time.Duration
	json      bool

	printed   string    // fingerprint of the last line
	printedAt time.Time // time at which the last line was printed
	cancelled bool      // tasks were cancelled because of --stop-after
	warnings  watchWarnings
}

const (
	minInterval = 100 * time.Millisecond
	linePause   = 5 * time.Second // minimum time between two lines, if lines are not rewritten
)

func Watch(a *cli.App) *cobra.Command {
	w := watching{a: a}
	w.warnings.say = w.say
	c := &cobra.Command{
		Use: "watch [CAMPAIGN]", Short: "Watch the progress of tasks and estimate the time left",
		Long: "Shows the states of all tasks or of a campaign, and the live workers with their busy slots. It shows " +
			"how many tasks finish per\n" +
			"second: over the last half minute, and since the start of the command. It estimates the time left as a " +
			"range. The range is right in\n" +
			"about 8 of 10 cases. The estimate does not include tasks that start later. Ctrl-C ends only this " +
			"command, not the tasks.\n" +
			"The command ends when the campaign is complete, unless --follow is given. With --until-done, it ends " +
			"when all tasks are finished.\n" +
			"The exit status is then 0 if all tasks succeeded, and 3 otherwise.",
		Example: "  tdf watch\n  tdf watch sweep-7 --until-done --stop-after 20",
		Args:    cli.AtMostOne("CAMPAIGN"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				w.campaign = args[0]
			}
			w.warnings.campaign = w.campaign
			return w.run(c.Context())
		},
	}
	flags := c.Flags()
	flags.BoolVar(&w.untilDone, "until-done", false, "end of the command when no task is open, running or executed")
	flags.BoolVarP(&w.follow, "follow", "f", false, "no end of the command when the campaign is complete")
	flags.Int64Var(&w.stopAfter, "stop-after", 0,
		"`N` number of failed or timed-out tasks after which open tasks are cancelled; archived tasks do not count")
	cli.SpanVar(flags, &w.interval, "interval", time.Second, "`SPAN` time between two updates")
	flags.BoolVar(&w.json, "json", false, "one JSON object per line")
	return c
}

func (w *watching) run(ctx context.Context) error {
	switch {
	case w.interval < minInterval:
		return cli.Usagef("invalid value %v for --interval: want at least %v", w.interval, minInterval)
	case w.follow && (w.untilDone || w.stopAfter > 0):
		return cli.Usagef("--follow with --until-done or --stop-after: these end the command")
	case w.stopAfter < 0:
		return cli.Usagef("invalid value %d for --stop-after: want at least 1", w.stopAfter)
	}
	return w.a.WithShards(ctx, func(s *cli.Shards) error {
		w.all = s
		defer w.endLine()
		return w.watch(ctx, s.Watch(w.campaign))
	})
}

func (w *watching) watch(ctx context.Context, watch *admin.Watch) error {
	for {
		s, err := watch.Look(ctx)
		if err != nil {
			return err
		}
		if s.Counts.Total() == 0 && (w.campaign != "" || w.untilDone) {
			return w.nothing()
		}
		if s.Counts.Total() == 0 {
			w.warnings.once(noTasks + "; open some with tdf open")
		}
		if err := w.cancelAfterFailures(ctx, &s); err != nil {
			return err
		}
		finished := s.Complete && !w.follow || s.Counts.Unfinished() == 0 && (w.untilDone || w.stopAfter > 0)
		w.warnings.check(&s)
		if err := w.show(&s, finished); err != nil {
			return err
		}
		if finished {
			return w.finish(ctx)
		}
		if err := cli.Sleep(ctx, w.interval); err != nil {
			return err
		}
	}
}

const noTasks = "no tasks in this namespace"

// nothing returns the error if no tasks exist.
func (w *watching) nothing() error {
	if w.campaign != "" {
		return cli.UnknownCampaign(w.campaign)
	}
	return cli.Usagef("nothing to watch: %s", noTasks)
}

// cancelAfterFailures cancels the open tasks if the number of failed tasks has reached --stop-after. If tasks are
// reopened later, it cancels them again.
func (w *watching) cancelAfterFailures(ctx context.Context, s *admin.Status) error {
	failed := s.Counts[task.Failed] + s.Counts[task.TimedOut]
	if w.stopAfter == 0 || failed < w.stopAfter || s.Counts[task.Open] == 0 {
		return nil
	}
	n := 0
	if err := w.all.Each(func(m *manager.Manager) error {
		some, err := m.CancelOpen(ctx, w.campaign)
		n += some
		return err
	}); err != nil {
		return err
	}
	w.cancelled = w.cancelled || n > 0
	w.say("%s failed: cancelled %s; waiting for the running tasks", format.Tasks(failed),
		format.Counted(n, "open task"))
	return nil
}

// say prints a message. On a terminal, it clears the progress line first.
func (w *watching) say(message string, args ...any) {
	if w.rewrites() && w.printed != "" {
		io.WriteString(w.a.Stdout, "\r\x1b[K")
		w.printed = ""
	}
	w.a.Say(message, args...)
}

// rewrites reports whether the command rewrites one progress line instead of printing new lines.
func (w *watching) rewrites() bool { return w.a.Terminal.Out && !w.json }

// show rewrites the progress line on a terminal. Elsewhere, it prints a new line after a change, but at most one line
// per linePause. It always prints the first and the last line.
func (w *watching) show(s *admin.Status, last bool) error {
	now := time.Now()
	var err error
	switch {
	case w.rewrites():
		_, err = io.WriteString(w.a.Stdout, "\r\x1b[K"+terminalLine(s, max(1, w.a.Terminal.Width-1)))
	case !last && w.printed != "" && (now.Sub(w.printedAt) < linePause || fingerprint(s) == w.printed):
		return nil
	default:
		w.printedAt = now
		_, err = fmt.Fprintln(w.a.Stdout, w.line(s))
	}
	w.printed = fingerprint(s)
	return err
}

// fingerprint returns a text about the status. If the text changes, tdf watch prints a new line.
func fingerprint(s *admin.Status) string {
	text := fmt.Sprint(manager.Summary{Counts: s.Counts}, s.Workers, s.Drained, s.Busy, s.Slots)
	for _, p := range s.Pauses {
		text += p.Program
	}
	return text
}

// endLine ends the progress line on a terminal.
func (w *watching) endLine() {
	if w.rewrites() && w.printed != "" {
		fmt.Fprintln(w.a.Stdout)
	}
	w.printed = ""
}

func (w *watching) line(s *admin.Status) string {
	if w.json {
		text, _ := cli.Marshal(s)
		return string(text)
	}
	return format.Printable(joined(pieces(s)))
}

// finish prints the outcomes of all tasks.
func (w *watching) finish(ctx context.Context) error {
	w.endLine()
	outcomes, err := w.all.Outcomes(ctx, w.campaign)
	if err != nil {
		return err
	}
	var parts []string
	for _, o := range []string{
		string(task.Succeeded), string(task.Failed), string(task.TimedOut), string(task.Expired),
		task.Cancelled,
	} {
		if n := outcomes[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ReplaceAll(o, "_", " ")))
		}
	}
	w.say("finished: %s", strings.Join(parts, ", "))
	if !w.cancelled && allSucceeded(outcomes) {
		return nil
	}
	if outcomes[string(task.Failed)]+outcomes[string(task.TimedOut)] > 0 {
		w.say("causes of failures: %s", cli.FailuresCommand(w.campaign))
	}
	return cli.ErrProblems
}

func allSucceeded(outcomes map[string]int64) bool {
	for outcome, n := range outcomes {
		if n > 0 && outcome != string(task.Succeeded) {
			return false
		}
	}
	return true
}
