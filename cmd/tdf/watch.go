package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/manager"
)

// A watching is what the flags of tdf watch say, and what was shown so far.
type watching struct {
	a         *app
	m         *client
	campaign  string
	untilDone bool
	stopAfter int64
	interval  time.Duration
	json      bool

	shown    string // the last line
	at       time.Time
	stopping bool // more tasks failed than --stop-after allows
	warnings warnings
}

const (
	leastInterval = 100 * time.Millisecond
	watchedPause  = 5 * time.Second // between two lines, where they are not rewritten
)

func newWatch(a *app) *cobra.Command {
	w := watching{a: a}
	w.warnings.say = w.say
	c := &cobra.Command{
		Use: "watch [CAMPAIGN]", Short: "Show how far the tasks are, and when they may be done",
		Long: "Shows the states of all tasks, or of a campaign's, how many are done in a second (over the last half minute, and since it was\n" +
			"called), the workers that live and their busy slots, and when all may be done that may run now: a range, by the times that\n" +
			"the last 200 tasks ran, which holds in some 8 of 10 cases. Ctrl-C ends the watching and nothing else.\n" +
			"With --until-done the exit status is 0 if all tasks succeeded, and 3 otherwise.",
		Example:           "  tdf watch sweep-7 --until-done --stop-after 20",
		Args:              atMostOne("CAMPAIGN"),
		ValidArgsFunction: a.completeCampaign,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				w.campaign = args[0]
			}
			w.warnings.campaign, w.warnings.stops = w.campaign, w.stopAfter > 0
			return w.run(c.Context())
		},
	}
	flags := c.Flags()
	flags.BoolVar(&w.untilDone, "until-done", false, "end when no task is open, running or executed")
	flags.Int64Var(&w.stopAfter, "stop-after", 0, "when `N` tasks have failed or timed out for good, cancel what is open; what runs is waited for (those that a manager has archived do not count)")
	flags.DurationVar(&w.interval, "interval", time.Second, "how often to look")
	flags.BoolVar(&w.json, "json", false, "a JSON object a line")
	return c
}

func (w *watching) run(ctx context.Context) (err error) {
	switch {
	case w.interval < leastInterval:
		return usage("--interval %v is less than %v", w.interval, leastInterval)
	case w.stopAfter < 0:
		return usage("--stop-after is from 1 up")
	}
	if w.m, err = w.a.manager(ctx); err != nil {
		return err
	}
	defer w.m.Close()
	defer w.endLine()
	return w.watch(ctx, w.m.admin().Watch(w.campaign))
}

func (w *watching) watch(ctx context.Context, watch *admin.Watch) error {
	for {
		s, err := watch.Look(ctx)
		if err != nil {
			return err
		}
		if s.Counts.Total() == 0 && (w.campaign != "" || w.untilDone) {
			return usage("there are no tasks%s: nothing to watch", w.ofCampaign())
		}
		if s.Counts.Total() == 0 {
			w.warnings.once("there are no tasks in this namespace: tdf open makes some")
		}
		if err := w.stop(ctx, &s); err != nil {
			return err
		}
		done := s.Counts.Unfinished() == 0 && (w.untilDone || w.stopAfter > 0)
		w.warnings.about(&s)
		if err := w.show(&s, done); err != nil {
			return err
		}
		if done {
			return w.close(ctx, &s)
		}
		if err := sleep(ctx, w.interval); err != nil {
			return err
		}
	}
}

func (w *watching) ofCampaign() string {
	if w.campaign == "" {
		return ""
	}
	return fmt.Sprintf(" of the campaign %q", w.campaign)
}

// stop cancels what is open when too much has failed, also what is opened again afterwards.
func (w *watching) stop(ctx context.Context, s *admin.Status) error {
	failed := s.Counts[tdf.Failed] + s.Counts[tdf.TimedOut]
	if w.stopAfter == 0 || failed < w.stopAfter || s.Counts[tdf.Open] == 0 {
		return nil
	}
	n, err := w.m.CancelOpen(ctx, w.campaign)
	if err != nil {
		return err
	}
	w.stopping = w.stopping || n > 0
	w.say("%d tasks have failed: cancelled the %d that were open; what runs is waited for", failed, n)
	return nil
}

// say says something beside the line that is rewritten.
func (w *watching) say(format string, args ...any) {
	if w.rewrites() && w.shown != "" {
		io.WriteString(w.a.stdout, "\r\x1b[K")
		w.shown = ""
	}
	w.a.say(format, args...)
}

func (w *watching) rewrites() bool { return w.a.style.out && !w.json }

// show writes the line anew on a terminal; elsewhere it writes one if something changed, but not too often, and
// in any case the first and the last.
func (w *watching) show(s *admin.Status, last bool) error {
	now := time.Now()
	var err error
	switch {
	case w.rewrites():
		_, err = io.WriteString(w.a.stdout, "\r\x1b[K"+terminalLine(s, max(1, w.a.style.width-1)))
	case !last && w.shown != "" && (now.Sub(w.at) < watchedPause || what(s) == w.shown):
		return nil
	default:
		w.at = now
		_, err = fmt.Fprintln(w.a.stdout, w.line(s))
	}
	w.shown = what(s)
	return err
}

// what tells whether something changed.
func what(s *admin.Status) string {
	text := fmt.Sprint(manager.Summary{Counts: s.Counts}, s.Workers, s.Drained, s.Busy, s.Slots)
	for _, p := range s.Pauses {
		text += fmt.Sprint(p.Program, p.Workers, p.Of)
	}
	return text
}

// endLine leaves the line on the terminal as it is.
func (w *watching) endLine() {
	if w.rewrites() && w.shown != "" {
		fmt.Fprintln(w.a.stdout)
	}
	w.shown = ""
}

func (w *watching) line(s *admin.Status) string {
	if w.json {
		text, _ := marshal(s)
		return string(text)
	}
	return printable(joined(pieces(s)))
}

func allSucceeded(outcomes map[string]int64) bool {
	for outcome, n := range outcomes {
		if n > 0 && outcome != string(tdf.Succeeded) {
			return false
		}
	}
	return true
}

// close says how it went.
func (w *watching) close(ctx context.Context, s *admin.Status) error {
	w.endLine()
	outcomes, err := w.m.admin().Outcomes(ctx, w.campaign)
	if err != nil {
		return err
	}
	var parts []string
	for _, o := range []string{string(tdf.Succeeded), string(tdf.Failed), string(tdf.TimedOut), string(tdf.Expired), tdf.Cancelled} {
		if n := outcomes[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ReplaceAll(o, "_", " ")))
		}
	}
	w.say("done: %s", strings.Join(parts, ", "))
	if !w.stopping && allSucceeded(outcomes) {
		return nil
	}
	if outcomes[string(tdf.Failed)]+outcomes[string(tdf.TimedOut)] > 0 {
		hint := "tdf failures"
		if w.campaign != "" {
			hint += " --campaign " + shellWord(w.campaign)
		}
		w.say("what failed, and why: %s", hint)
	}
	return errNotWell
}
