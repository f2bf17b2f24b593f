package steer

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/jsonview"
	"github.com/tdf-framework/tdf/manager"
)

func Periodic(a *cli.App) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "periodic", Short: "List, pause, run or remove periodic tasks",
		Long: "Lists the periodics: tasks that the servers open at the times of a schedule (docs/periodic.md).\n" +
			"tdf open --every stores one.",
		Example: "  tdf periodic\n  tdf periodic --json",
		Args:    cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.WithManager(c.Context(), func(m *cli.Client) error {
				return listPeriodics(c.Context(), a, m, asJSON)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	c.AddCommand(showPeriodic(a),
		periodicCommand(a, "pause", "Skip the times of a periodic until it is resumed",
			"Skips the times of a periodic until it is resumed. Its open tasks go on.", "paused",
			manager.Periodics.Pause),
		periodicCommand(a, "resume", "End the pause of a periodic",
			"Ends the pause of a periodic. Its next time is the first one from now on.", "resumed",
			manager.Periodics.Resume),
		periodicCommand(a, "rm", "Remove a periodic", "Removes a periodic. The tasks that it has opened stay.", "removed",
			manager.Periodics.Remove),
		periodicCommand(a, "run", "Open the tasks of a periodic now", "Opens the tasks of a periodic now, also if it is "+
			"paused, or if earlier tasks are unfinished, and prints their ids.\nThe next time stays the same.", "opened",
			func(p manager.Periodics, ctx context.Context, name string) error {
				ids, err := p.Run(ctx, name)
				for _, id := range ids {
					fmt.Fprintln(a.Stdout, id)
				}
				return err
			}))
	return c
}

func periodicCommand(
	a *cli.App, name, short, long, done string, act func(manager.Periodics, context.Context, string) error,
) *cobra.Command {
	c := &cobra.Command{
		Use: name + " NAME", Short: short, Long: long,
		Example: "  tdf periodic " + name + " nightly\n  tdf --namespace lab periodic " + name + " nightly",
		Args:    cli.ExactlyOne("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.WithManager(c.Context(), func(m *cli.Client) error {
				if err := act(m.Manager.Periodics(), c.Context(), args[0]); err != nil {
					return err
				}
				a.Say("%s: %s", format.OneLine(args[0], 0), done)
				return nil
			})
		},
	}
	cli.CompleteValues(c)
	return c
}

// A periodicJSON is the JSON form of a periodic.
type periodicJSON struct {
	Name     string    `json:"name"`
	Schedule string    `json:"schedule"`
	Zone     string    `json:"zone,omitempty"`
	Overlap  string    `json:"overlap"`
	Missed   string    `json:"missed"`
	Next     time.Time `json:"next,omitzero"`
	Last     time.Time `json:"last,omitzero"`
	Outcome  string    `json:"outcome,omitempty"`
	Why      string    `json:"why,omitempty"`
	IDs      []int64   `json:"ids,omitempty"`
	PausedBy string    `json:"paused_by,omitempty"`
	PausedAt time.Time `json:"paused_at,omitzero"`

	Tasks []manager.Definition `json:"tasks"`
}

// MarshalJSON writes the times as in docs/tdf.md, "JSON".
func (p periodicJSON) MarshalJSON() ([]byte, error) { return jsonview.Marshal(p) }

func toJSON(r *manager.PeriodicRecord) periodicJSON {
	p := periodicJSON{
		Name: r.Name, Schedule: r.Schedule, Zone: r.Zone, Overlap: string(r.Overlap), Missed: string(r.Missed),
		Next: r.Next.Std(), IDs: r.IDs, PausedBy: r.PausedBy, PausedAt: r.PausedAt.Std(), Tasks: r.Tasks,
	}
	if r.Last != nil {
		p.Last, p.Outcome, p.Why = r.Last.Time.Std(), string(r.Last.Outcome), r.Last.Why
	}
	return p
}

// next says when the next time comes.
func (p *periodicJSON) next() string {
	switch {
	case p.PausedBy != "":
		return "paused by " + p.PausedBy + " since " + cli.Clock(p.PausedAt)
	case p.Next.IsZero():
		return "never"
	}
	return cli.Clock(p.Next)
}

// last says what happened at the last time.
func (p *periodicJSON) last() string {
	if p.Last.IsZero() {
		return ""
	}
	text := cli.Clock(p.Last) + " " + p.Outcome
	if p.Why != "" {
		text += ": " + p.Why
	}
	return text
}

func listPeriodics(ctx context.Context, a *cli.App, m *cli.Client, asJSON bool) error {
	all, invalid := m.Periodics().All(ctx)
	t := a.Table("name", "schedule", "next", "last")
	for _, r := range all {
		p := toJSON(r)
		if !asJSON {
			t.Row(p.Name, strings.TrimSpace(p.Schedule+" "+p.Zone), p.next(), p.last())
			continue
		}
		if err := cli.JsonLines(a.Stdout).Encode(p); err != nil {
			return err
		}
	}
	if len(all) == 0 && invalid == nil {
		a.Say("there are no periodic tasks; tdf open --every stores some")
	}
	if asJSON || len(all) == 0 {
		return invalid
	}
	if err := t.Write(); err != nil {
		return err
	}
	return invalid
}

func showPeriodic(a *cli.App) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "show NAME", Short: "Show a periodic and its tasks", Long: "Shows a periodic and its tasks.",
		Example: "  tdf periodic show nightly\n  tdf periodic show nightly --json",
		Args:    cli.ExactlyOne("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.WithManager(c.Context(), func(m *cli.Client) error {
				r, err := m.Periodics().Get(c.Context(), args[0])
				if err != nil {
					return err
				}
				if asJSON {
					return cli.JsonLines(a.Stdout).Encode(toJSON(r))
				}
				return printPeriodic(a, toJSON(r))
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "JSON instead of text")
	cli.CompleteValues(c)
	return c
}

func printPeriodic(a *cli.App, p periodicJSON) error {
	t := a.Table("property", "value")
	for _, row := range [][2]string{
		{"name", p.Name},
		{"schedule", p.Schedule},
		{"zone", p.Zone},
		{"overlap", p.Overlap},
		{"missed", p.Missed},
		{"next", p.next()},
		{"last", p.last()},
		{"ids", fmt.Sprint(p.IDs)},
	} {
		t.Row(row[0], row[1])
	}
	for _, d := range p.Tasks {
		text, err := d.MarshalJSON()
		if err != nil {
			return err
		}
		t.Row("task", string(text))
	}
	return t.Write()
}
