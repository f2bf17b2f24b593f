package look

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// An updateReader holds the flags of tdf updates, and the last update that it has printed.
type updateReader struct {
	a      *cli.App
	m      *cli.Client
	id     int64
	from   string
	follow bool
	asJSON bool

	after admin.Update // the last update that the command has printed
}

func Updates(a *cli.App) *cobra.Command {
	u := updateReader{a: a}
	c := &cobra.Command{
		Use: "updates ID", Short: "Print the updates that a task's program reported",
		Long: "Prints one line for each update: the round and the number of the update, the time, and the text. " +
			"Control characters are printed as escapes.\n" +
			"Rounds count from 0, and the updates of a round from 1: 0-7 is the seventh update of the first round.",
		Example: "  tdf updates 17\n  tdf updates 17 --after 0-7 --follow",
		Args:    cli.ExactlyOne("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			if u.after, err = parseUpdate(u.from); err != nil {
				return err
			}
			return a.WithTask(c.Context(), args[0], func(m *cli.Client, id int64) error {
				u.m, u.id = m, id
				return u.run(c.Context())
			})
		},
	}
	c.Flags().StringVar(&u.from, "after", "0-0", "`ROUND-NUMBER` only the updates that follow this one")
	c.Flags().BoolVarP(&u.follow, "follow", "f", false, "updates as they arrive, until the task's round ends")
	c.Flags().BoolVar(&u.asJSON, "json", false, "one JSON object per line")
	return c
}

// parseUpdate reads the round and the number of an update.
func parseUpdate(text string) (u admin.Update, err error) {
	round, number, _ := strings.Cut(text, "-")
	r, errRound := strconv.ParseUint(round, 10, 31)
	n, errNumber := strconv.ParseUint(number, 10, 31)
	if errors.Join(errRound, errNumber) != nil {
		return u, cli.Usagef("invalid value %q for --after: want the round and the number of an update, such as 0-7",
			text)
	}
	return admin.Update{Round: int(r), Number: int(n)}, nil
}

func (u *updateReader) run(ctx context.Context) error {
	t, _, err := u.m.Admin().CurrentRound(ctx, u.id)
	if errors.Is(err, task.ErrNoTask) {
		return noTask(ctx, u.a, u.m, u.id)
	}
	if err != nil {
		return err
	}
	for round := t.Round; ; {
		// decided before the updates are read, so that none of them is missed
		ended := !u.follow || admin.RoundEnded(t, round)
		if err := u.printNew(ctx); err != nil || ended {
			u.sayRemoved(t)
			return err
		}
		if err := u.m.Admin().Follow(ctx, u.id); err != nil {
			return err
		}
		if err := cli.Sleep(ctx, admin.FollowPause); err != nil {
			return err
		}
		if t, _, err = u.m.Admin().CurrentRound(ctx, u.id); err != nil {
			return err
		}
	}
}

// sayRemoved says that keep_outputs has removed the task's updates, if the command has printed none.
func (u *updateReader) sayRemoved(t *manager.Task) {
	if removed := t.Stored().OutputsRemoved; u.after.Number == 0 && removed > 0 {
		u.a.Say("earlier updates of task %d were %s", t.ID, removedAt(removed.Std()))
	}
}

// updatesAtOnce is how many updates the command reads with one call.
const updatesAtOnce = 1000

// printNew prints the updates that follow the last printed one.
func (u *updateReader) printNew(ctx context.Context) error {
	for {
		page, err := u.m.Admin().Updates(ctx, u.id, u.after, updatesAtOnce)
		if err != nil {
			return err
		}
		for _, update := range page {
			if err := u.print(update); err != nil {
				return err
			}
			u.after = update
		}
		if len(page) < updatesAtOnce {
			return nil
		}
	}
}

func (u *updateReader) print(update admin.Update) error {
	if u.asJSON {
		return cli.JsonLines(u.a.Stdout).Encode(update)
	}
	_, err := fmt.Fprintf(u.a.Stdout, "%d-%d  %s  %s\n", update.Round, update.Number, cli.Clock(update.Time),
		format.OneLine(update.Line, 0))
	return err
}
