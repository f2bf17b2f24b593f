package look

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/format"
)

func Workers(a *cli.App) *cobra.Command {
	asJSON, all := false, false
	c := &cobra.Command{
		Use: "workers", Short: "List workers and their running tasks",
		Long: "Lists the live workers. A worker without a heartbeat for the time of its lease is silent, and its " +
			"tasks are lost.\n" +
			"RUNS lists the tasks that the worker ran at its last heartbeat. A worker sends three heartbeats per " +
			"lease.\n" +
			"If the next heartbeat is overdue, RUNS shows the age of the list.\n" +
			"REMARKS shows the queues, tags and handlers of the worker, if it has any, and what it uses of its resources.",
		Example: "  tdf workers\n  tdf workers --json",
		Args:    cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.WithManager(c.Context(), func(m *cli.Client) error {
				return listWorkers(c.Context(), a, m, all, asJSON)
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false,
		"also workers that have ended, as long as Redis remembers them (their key remember)")
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	return c
}

func listWorkers(ctx context.Context, a *cli.App, m *cli.Client, all, asJSON bool) error {
	now, err := m.Now(ctx)
	if err != nil {
		return err
	}
	workers, err := m.Admin().Workers(ctx)
	if err != nil {
		return err
	}
	t := a.Table("worker", "host", "pid", "state", "slots", "runs", "seen", "version", "remarks")
	shown := 0
	for _, w := range workers {
		if w.State == admin.WorkerGone && !all {
			continue
		}
		shown++
		if asJSON {
			if err := cli.JsonLines(a.Stdout).Encode(w); err != nil {
				return err
			}
			continue
		}
		t.Row(w.Name, w.Host, format.Number(w.PID), w.State, format.Number(w.Slots), runsText(w, now),
			format.Span(now.Sub(w.Seen)), w.Version, remarks(w))
	}
	if shown == 0 {
		a.Say("no live workers in this namespace; start tdf-worker, or tdf up; tdf doctor names workers of the " +
			"original TDF, which send no heartbeats")
		return nil
	}
	if asJSON {
		return nil
	}
	return t.Write()
}

func campaignOf(w admin.Worker) []string {
	if w.Campaign == "" {
		return nil
	}
	return []string{w.Campaign}
}

func remarks(w admin.Worker) string {
	var all []string
	for _, offer := range []struct {
		name   string
		values []string
	}{{"queues ", w.Queues}, {"tags ", w.Tags}, {"handlers ", w.Handlers}, {"only campaign ", campaignOf(w)}} {
		if len(offer.values) > 0 {
			all = append(all, offer.name+short(offer.values, ", "))
		}
	}
	if w.Uses() != "" {
		all = append(all, "uses "+w.Uses())
	}
	if w.Drained != "" {
		all = append(all, "drained by "+w.Drained)
	}
	if w.Shortage != "" {
		all = append(all, w.Shortage)
	}
	return strings.Join(all, "; ")
}

// heartbeatSlack is the delay after which the next heartbeat counts as overdue.
const heartbeatSlack = 2 * time.Second

// runsText returns the tasks that a worker ran at its last heartbeat. If the next heartbeat is overdue, the text
// contains the age of the last heartbeat.
func runsText(w admin.Worker, now time.Time) string {
	runs, age := shortIDs(w.Runs), now.Sub(w.Seen)
	if runs != "" && age > w.Lease/3+heartbeatSlack {
		return fmt.Sprintf("%s (%s ago)", runs, format.Span(age))
	}
	return runs
}

// shortIDs returns a text with the first ids of a list.
func shortIDs(ids []int64) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = format.Number(id)
	}
	return short(texts, " ")
}

// short returns a text with the first values of a list. If it leaves out values, the text contains the length of the
// list.
func short(values []string, separator string) string {
	const limit = 4
	if len(values) > limit {
		values = append(slices.Clone(values[:limit]), fmt.Sprintf("… (%d)", len(values)))
	}
	return strings.Join(values, separator)
}
