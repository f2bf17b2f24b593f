package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/internal/stdtime"
)

func newWorkers(a *app) *cobra.Command {
	asJSON, all := false, false
	c := &cobra.Command{
		Use: "workers", Short: "List the workers, and what they do",
		Long: "Lists the workers that live. One that has not sent a heartbeat for the time of its lease is silent: what it ran is lost.\n" +
			"RUNS is as of the last heartbeat, every third of the lease; it says how old it is when the next one is overdue.",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			m, err := a.manager(c.Context())
			if err != nil {
				return err
			}
			defer m.Close()
			return a.listWorkers(c.Context(), m, all, asJSON)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "also those that have said goodbye within a week")
	c.Flags().BoolVar(&asJSON, "json", false, "a JSON object a line")
	return c
}

func (a *app) listWorkers(ctx context.Context, m *client, all, asJSON bool) error {
	now, err := m.now(ctx)
	if err != nil {
		return err
	}
	workers, err := m.admin().Workers(ctx)
	if err != nil {
		return err
	}
	s := a.sheet("worker", "host", "pid", "state", "slots", "runs", "seen", "version", "remarks")
	shown := 0
	for _, w := range workers {
		if w.State == "gone" && !all {
			continue
		}
		shown++
		if asJSON {
			if err := jsonLines(a.stdout).Encode(w); err != nil {
				return err
			}
			continue
		}
		s.row(w.Name, w.Host, strconv.Itoa(w.PID), w.State, strconv.Itoa(w.Slots), runsText(w, now),
			ago(now.Sub(stdtime.TDF(w.Seen))), w.Version, remarks(w))
	}
	if shown == 0 {
		a.say("no worker lives in this namespace: start tdf-worker, or tdf up")
		return nil
	}
	if asJSON {
		return nil
	}
	return s.write()
}

func remarks(w admin.Worker) string {
	var all []string
	if w.Drained != "" {
		all = append(all, "told to drain by "+w.Drained)
	}
	for _, p := range w.Pauses {
		all = append(all, "pauses "+p.Program+": "+p.Why)
	}
	return strings.Join(all, "; ")
}

// heartbeatSlack is how late a heartbeat may be before RUNS says how old it is.
const heartbeatSlack = tdf.Seconds(2)

// runsText is what the worker ran at its last heartbeat, and how long ago that was if the next one is overdue.
func runsText(w admin.Worker, now tdf.Time) string {
	runs, age := shortIDs(w.Runs), now.Sub(stdtime.TDF(w.Seen))
	if runs != "" && age > stdtime.Seconds(w.Lease)/3+heartbeatSlack {
		return fmt.Sprintf("%s (%s ago)", runs, ago(age))
	}
	return runs
}

// shortIDs names the first tasks of a list.
func shortIDs(ids []int64) string {
	const most = 4
	var parts []string
	for i, id := range ids {
		if i == most {
			parts = append(parts, fmt.Sprintf("… (%d)", len(ids)))
			break
		}
		parts = append(parts, strconv.FormatInt(id, 10))
	}
	return strings.Join(parts, " ")
}

// ago says how long something is ago, or takes, as people do.
func ago(d tdf.Seconds) string {
	switch s := float64(d); {
	case s < 0:
		return "0s"
	case s < 100:
		return fmt.Sprintf("%.0fs", s)
	case s < 100*60:
		return fmt.Sprintf("%.0fm", s/60)
	case s < 72*3600:
		return fmt.Sprintf("%.0fh", s/3600)
	default:
		return fmt.Sprintf("%.0fd", s/86400)
	}
}

// completeWorkers offers the names of workers to a shell.
func (a *app) completeWorkers(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(c.Context(), completionBound)
	defer cancel()
	m, err := a.manager(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer m.Close()
	workers, _ := m.admin().Workers(ctx)
	var names []string
	for _, w := range workers {
		if !slices.Contains(args, w.Name) {
			names = append(names, w.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completionBound is how long a shell waits for what it offers.
const completionBound = 2 * time.Second

func newDrain(a *app) *cobra.Command {
	undo := false
	c := &cobra.Command{
		Use: "drain WORKER…", Short: "Have workers claim nothing more",
		Long: "Tells workers to claim nothing more, by their next heartbeat (every third of their lease). What they run goes on to its end; tdf requeue\n" +
			"takes it from them. They stay, so that nothing starts them again, and so does the order: until tdf drain --undo.",
		Example:           "  tdf drain node-7 && tdf requeue --worker node-7 --elsewhere",
		Args:              someArguments("WORKER"),
		ValidArgsFunction: a.completeWorkers,
		RunE: func(c *cobra.Command, args []string) error {
			m, err := a.manager(c.Context())
			if err != nil {
				return err
			}
			defer m.Close()
			order, said := m.admin().Drain, "told to drain"
			if undo {
				order, said = m.admin().Resume, "told to go on"
			}
			for _, name := range args {
				if err := order(c.Context(), name); err != nil {
					return err
				}
				a.say("%s: %s", name, said)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&undo, "undo", false, "have them claim again")
	return c
}
