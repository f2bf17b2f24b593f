package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
)

func newStats(a *app) *cobra.Command {
	asJSON, prometheus, output := false, false, ""
	c := &cobra.Command{
		Use: "stats", Short: "Show metrics of the namespace",
		Long: "Shows metrics: tasks by state and by queue, waiting times, the server, workers and their slots, stored programs, and the memory of Redis.\n" +
			"With --prometheus, the command prints the metrics in Prometheus's text format, for the textfile collector of node_exporter.\n" +
			"With --output, it replaces a file atomically, so that readers always see a complete file.",
		Example: "  tdf stats --prometheus --output /var/lib/node_exporter/tdf.prom",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if prometheus && asJSON {
				return usage("--prometheus with --json: want one format")
			}
			on := a.terminal
			if output != "" {
				on = terminal{} // a file gets no layout for a terminal
			}
			text, err := a.stats(c.Context(), asJSON, prometheus, on)
			switch {
			case err != nil:
				return err
			case output != "":
				return replaceFile(output, text)
			}
			_, err = a.stdout.Write(text)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	c.Flags().BoolVar(&prometheus, "prometheus", false, "Prometheus's text format")
	c.Flags().StringVar(&output, "output", "", "`FILE` output file, instead of stdout")
	return c
}

// stats returns the metrics in the chosen format. The table has the layout for this terminal.
func (a *app) stats(ctx context.Context, asJSON, prometheus bool, on terminal) ([]byte, error) {
	tool, err := a.tool()
	if err != nil {
		return nil, err
	}
	var s admin.Stats
	err = a.withManagerOf(ctx, tool, func(m *client) (err error) {
		s, err = m.admin().Stats(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	switch {
	case asJSON:
		text, err := marshal(s)
		return append(text, '\n'), err
	case prometheus:
		return exposition(tool.Manager.Namespace, &s)
	}
	var text bytes.Buffer
	err = (&app{stdout: &text, terminal: on}).statsTable(&s)
	return text.Bytes(), err
}

func (a *app) statsTable(s *admin.Stats) error {
	t := a.table("metric", "value")
	for _, state := range tdf.States {
		t.row(string(state), number(s.Counts[state]))
	}
	t.row("finished per second", perSecond(s.Rate))
	t.row("longest wait", span(s.Waited))
	t.row("server lag", span(s.DueLag))
	t.row("server seen", seenText(s.At, s.Server))
	for _, state := range admin.WorkerStates() {
		t.row("workers "+state, number(s.Workers[state]))
	}
	t.row("busy slots", fmt.Sprintf("%d of %d", s.Busy, s.Slots))
	for _, q := range s.Queues {
		t.row("open in queue "+oneLine(q.Queue, 0), openText(q))
	}
	t.row("waiting for tasks", number(s.Waiting))
	t.row("stored programs", fmt.Sprintf("%d, %s", s.Programs, size(s.ProgramBytes)))
	t.row("redis memory", memoryOfRedis(s.Memory))
	return t.write()
}

func openText(q admin.Queue) string {
	if q.AtLeast {
		return "at least " + number(q.Open)
	}
	return number(q.Open)
}

func seenText(now, at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return span(now.Sub(at)) + " ago"
}

func memoryOfRedis(m admin.Memory) string {
	switch {
	case m.Used == 0:
		return "unknown"
	case m.Limit == 0:
		return size(m.Used) + ", no limit"
	}
	return fmt.Sprintf("%s of %s", size(m.Used), size(m.Limit))
}
