package operate

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/metrics"
	"github.com/tdf-framework/tdf/internal/task"
)

func Stats(a *cli.App) *cobra.Command {
	asJSON, prometheus, output := false, false, ""
	c := &cobra.Command{
		Use: "stats", Short: "Show metrics of the namespace",
		Long: "Shows metrics: tasks by state and by queue, waiting times, the server, workers and their slots, " +
			"stored programs, the memory of Redis,\n" +
			"and the tasks that ended in the last hour and day, with percentiles of their run times and waiting " +
			"times.\n" +
			"With --prometheus, the command prints the metrics in Prometheus's text format, for the textfile " +
			"collector of node_exporter.\n" +
			"With --output, it replaces a file atomically, so that readers always see a complete file.",
		Example: "  tdf stats --prometheus --output /var/lib/node_exporter/tdf.prom\n  tdf stats --json",
		Args:    cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if prometheus && asJSON {
				return cli.Usagef("--prometheus with --json: want one format")
			}
			on := a.Terminal
			if output != "" {
				on = cli.Terminal{} // a file gets no layout for a terminal
			}
			text, err := printStats(c.Context(), a, asJSON, prometheus, on)
			switch {
			case err != nil:
				return err
			case output != "":
				return replaceFile(a.Path(output), text)
			}
			_, err = a.Stdout.Write(text)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	c.Flags().BoolVar(&prometheus, "prometheus", false, "Prometheus's text format")
	c.Flags().StringVar(&output, "output", "", "`FILE` output file, instead of stdout")
	return c
}

// printStats returns the metrics in the chosen format. The table has the layout for this terminal.
func printStats(ctx context.Context, a *cli.App, asJSON, prometheus bool, on cli.Terminal) ([]byte, error) {
	tool, err := a.Tool()
	if err != nil {
		return nil, err
	}
	var text []byte
	if prometheus {
		err := a.Unconnected(tool, func(all []*admin.Admin) (err error) {
			text, err = metrics.Text(metrics.Of(all...))
			return err
		})
		return text, err
	}
	err = a.WithManagerOf(ctx, tool, func(m *cli.Client) (err error) {
		s, err := m.Admin().Stats(ctx)
		switch {
		case err != nil:
			return err
		case asJSON:
			text, err = cli.Marshal(s)
			text = append(text, '\n')
			return err
		}
		var table bytes.Buffer
		err = statsTable(&cli.App{Process: cli.Process{Stdout: &table}, Terminal: on}, &s)
		text = table.Bytes()
		return err
	})
	return text, err
}

func statsTable(a *cli.App, s *admin.Stats) error {
	t := a.Table("metric", "value")
	for _, state := range task.States {
		t.Row(string(state), format.Number(s.Counts[state]))
	}
	t.Row("finished per second", format.PerSecond(s.Rate))
	t.Row("longest wait", format.Span(s.Waited))
	t.Row("server lag", format.Span(s.DueLag))
	t.Row("server seen", seenText(s.At, s.Server))
	for _, state := range admin.WorkerStates() {
		t.Row("workers "+state, format.Number(s.Workers[state]))
	}
	t.Row("busy slots", fmt.Sprintf("%d of %d", s.Busy, s.Slots))
	for _, q := range s.Queues {
		if q.Open == 0 {
			continue
		}
		t.Row("open in queue "+format.OneLine(q.Queue, 0), format.Number(q.Open))
	}
	t.Row("waiting for tasks", format.Number(s.Waiting))
	t.Row("stored programs", fmt.Sprintf("%d, %s", s.Programs, format.Size(s.ProgramBytes)))
	t.Row("failed callbacks", format.Number(s.CallbacksFailed))
	t.Row("redis memory", memoryOfRedis(s.Memory))
	addPeriod(t.Row, "last hour", s.At, &s.History.Hour)
	addPeriod(t.Row, "last day", s.At, &s.History.Day)
	return t.Write()
}

// addPeriod adds the counts of a period. If it has none, it adds nothing.
func addPeriod(row func(...string), name string, now time.Time, p *admin.Period) {
	if p.Since.IsZero() {
		return
	}
	row(name+" counted since", seenText(now, p.Since))
	row(name+" succeeded", format.Number(p.Succeeded))
	row(name+" failed", format.Number(p.Failed))
	row(name+" run time", percentilesText(p.Run))
	row(name+" wait", percentilesText(p.Wait))
}

func percentilesText(p admin.Percentiles) string {
	if p.N == 0 {
		return "none"
	}
	return fmt.Sprintf("p50 %s, p90 %s, p99 %s", format.Elapsed(p.P50), format.Elapsed(p.P90), format.Elapsed(p.P99))
}

func seenText(now, at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return format.Span(now.Sub(at)) + " ago"
}

func memoryOfRedis(m admin.Memory) string {
	switch {
	case m.Used == 0:
		return "unknown"
	case m.Limit == 0:
		return format.Size(m.Used) + ", no limit"
	}
	return fmt.Sprintf("%s of %s", format.Size(m.Used), format.Size(m.Limit))
}

// replaceFile replaces a file atomically: a reader sees either the old or the new content.
func replaceFile(path string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	if err := finishFile(file, path, text); err != nil {
		os.Remove(file.Name())
		return err
	}
	return nil
}

// finishFile writes and closes a temporary file, and then renames it to path.
func finishFile(file *os.File, path string, text []byte) error {
	defer file.Close()
	if _, err := file.Write(text); err != nil {
		return err
	}
	if err := file.Chmod(0o644); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
