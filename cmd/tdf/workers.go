package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
)

func newWorkers(a *app) *cobra.Command {
	asJSON, all := false, false
	c := &cobra.Command{
		Use: "workers", Short: "List workers and their running tasks",
		Long: "Lists the live workers. A worker without a heartbeat for the time of its lease is silent, and its tasks are lost.\n" +
			"RUNS is from the last heartbeat, which comes every third of the lease. If the next one is overdue, RUNS says how old it is.",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withManager(c.Context(), func(m *client) error { return a.listWorkers(c.Context(), m, all, asJSON) })
		},
	}
	c.Flags().BoolVar(&all, "all", false, "also workers that ended within a week")
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
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
	t := a.table("worker", "host", "pid", "state", "slots", "runs", "seen", "version", "remarks")
	shown := 0
	for _, w := range workers {
		if w.State == "gone" && !all {
			continue
		}
		shown++
		if asJSON {
			if err := jsonLines(a.stdout).Encode(workerJSON(w)); err != nil {
				return err
			}
			continue
		}
		t.row(w.Name, w.Host, number(w.PID), stateOf(w), number(w.Slots), runsText(w, now),
			span(now.Sub(w.Seen)), w.Version, remarks(w))
	}
	if shown == 0 {
		a.say("no live workers in this namespace; start tdf-worker, or tdf up")
		return nil
	}
	if asJSON {
		return nil
	}
	return t.write()
}

// stateOf returns the state of a worker: starting, working, draining, silent or gone.
func stateOf(w admin.Worker) string {
	if !w.Alive && w.State != "gone" {
		return "silent"
	}
	return w.State
}

func remarks(w admin.Worker) string {
	var all []string
	if w.Drained != "" {
		all = append(all, "drained by "+w.Drained)
	}
	for _, p := range w.Pauses {
		all = append(all, "pauses "+p.Program+": "+p.Why)
	}
	return strings.Join(all, "; ")
}

// heartbeatSlack is the delay of a heartbeat after which RUNS says how old it is.
const heartbeatSlack = tdf.Seconds(2)

// runsText returns the tasks at the last heartbeat, with their age if the next heartbeat is overdue.
func runsText(w admin.Worker, now tdf.Time) string {
	runs, age := shortIDs(w.Runs), now.Sub(w.Seen)
	if runs != "" && age > w.Lease/3+heartbeatSlack {
		return fmt.Sprintf("%s (%s ago)", runs, span(age))
	}
	return runs
}

// shortIDs returns the first ids of a list, and its length.
func shortIDs(ids []int64) string {
	const limit = 4
	var parts []string
	for i, id := range ids {
		if i == limit {
			parts = append(parts, fmt.Sprintf("… (%d)", len(ids)))
			break
		}
		parts = append(parts, number(id))
	}
	return strings.Join(parts, " ")
}

func workerJSON(w admin.Worker) any {
	return struct {
		Name    string  `json:"name"`
		Host    string  `json:"host"`
		PID     int     `json:"pid"`
		Version string  `json:"version"`
		State   string  `json:"state"` // starting, working, draining, silent or gone
		Slots   int     `json:"slots"`
		Runs    []int64 `json:"runs"` // ids of its tasks at the last heartbeat
		Seen    string  `json:"seen"`
		Lease   float64 `json:"lease"`
		Drained string  `json:"drained,omitempty"`
		Pauses  []pause `json:"pauses,omitempty"`
	}{w.Name, w.Host, w.PID, w.Version, stateOf(w), w.Slots, w.Runs, stamp(w.Seen), float64(w.Lease), w.Drained, pausesOf(w)}
}

// A pause is a program that a worker pauses.
type pause struct {
	Program string `json:"program"`
	Until   string `json:"until"`
	Why     string `json:"why"`
}

func pausesOf(w admin.Worker) []pause {
	var all []pause
	for _, p := range w.Pauses {
		all = append(all, pause{p.Program, stamp(w.Seen.Add(p.For)), p.Why})
	}
	return all
}
