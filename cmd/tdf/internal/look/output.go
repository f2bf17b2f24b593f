package look

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// A printout holds the flags of tdf output and the id of its task.
type printout struct {
	a      *cli.App
	m      *cli.Client
	id     int64
	round  int
	stderr bool
	follow bool
	raw    bool

	r *manager.Round // the round, as first read from Redis
}

func Output(a *cli.App) *cobra.Command {
	p := printout{a: a}
	c := &cobra.Command{
		Use: "output ID", Short: "Print the output of a task's program",
		Long: "Prints the stdout of a task's program in its last run, byte for byte. On a terminal, it prints " +
			"control characters as escapes.\n" +
			"While the program runs, the command prints the last 4 KiB of its stdout and stderr. With --follow, it " +
			"prints both until the round ends.",
		Example: "  tdf output 17 --error\n  tdf output 17 --follow",
		Args:    cli.ExactlyOne("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			switch given := c.Flags().Changed("round"); {
			case p.follow && p.stderr:
				return cli.Usagef("--follow prints stdout and stderr together, so it does not go with --error")
			case !given && p.follow:
				p.round = currentRound
			case !given:
				p.round = lastRound
			case p.round < 0:
				return cli.Usagef("invalid value %d for --round: want at least 0", p.round)
			}
			return a.WithTask(c.Context(), args[0], func(m *cli.Client, id int64) error {
				p.m, p.id = m, id
				return p.run(c.Context())
			})
		},
	}
	c.Flags().IntVar(&p.round, "round", 0,
		"`N` number of the round, from 0 (default: the last round that ran; with --follow, the current round)")
	c.Flags().BoolVar(&p.stderr, "error", false, "stderr instead of stdout")
	c.Flags().BoolVarP(&p.follow, "follow", "f", false, "output as it arrives, until the round ends")
	c.Flags().BoolVar(&p.raw, "raw", false, "control characters without escapes, even on a terminal")
	return c
}

func (p *printout) run(ctx context.Context) error {
	t, err := p.read(ctx)
	if err != nil {
		return err
	}
	if p.follow && !admin.RoundEnded(t, p.round) {
		return p.followRound(ctx, t)
	}
	if removed := removedText(p.r); removed != "" && p.text() == "" {
		p.a.Say("the outputs of round %d were %s", p.round, removed)
		return nil
	}
	if len(p.text()) == 0 && p.r.Tail != "" {
		return p.printTail(t)
	}
	return p.printWhole(t)
}

// read reads the task and the round, and decides which round the command prints.
func (p *printout) read(ctx context.Context) (*manager.Task, error) {
	t, r, err := p.readRound(ctx)
	if err != nil {
		return t, p.explained(ctx, err)
	}
	p.r, p.round = r, r.Number
	return t, nil
}

// explained returns an error with the reason why the task may not exist.
func (p *printout) explained(ctx context.Context, err error) error {
	if errors.Is(err, task.ErrNoTask) {
		return noTask(ctx, p.a, p.m, p.id)
	}
	return err
}

// Values of printout.round that are not numbers of rounds.
const (
	lastRound    = -1
	currentRound = -2
)

func (p *printout) readRound(ctx context.Context) (*manager.Task, *manager.Round, error) {
	switch p.round {
	case lastRound:
		return p.m.Admin().LastRun(ctx, p.id)
	case currentRound:
		return p.m.Admin().CurrentRound(ctx, p.id)
	}
	return p.m.Admin().Round(ctx, p.id, p.round)
}

// text returns the stdout or stderr of the round.
func (p *printout) text() string {
	if p.stderr {
		return p.r.Error
	}
	return p.r.Output
}

// printWhole prints the output that Redis contains. If the output is empty or incomplete, it prints the reason.
func (p *printout) printWhole(t *manager.Task) error {
	r := p.r
	switch {
	case t.Round == p.round && t.State == task.Open:
		p.a.Say("task %d has no output yet: it is open (see tdf explain %d)", t.ID, t.ID)
	case !admin.RoundEnded(t, p.round):
		p.a.Say("round %d runs on %s and has no output yet", p.round, r.Worker)
	}
	text := p.text()
	if p.follow {
		text += r.Error
	}
	if err := p.print(text); err != nil {
		return err
	}
	bytes, complete := r.OutputBytes, r.OutputWhole()
	if p.stderr {
		bytes, complete = r.ErrorBytes, r.ErrorWhole()
	}
	switch {
	case !admin.RoundEnded(t, p.round):
	case p.text() == "" && !p.stderr && r.Error != "" && !p.follow:
		p.a.Say("stdout is empty; --error prints %s of stderr", format.Size(int64(len(r.Error))))
	case text == "" && r.Tail == "":
		p.a.Say("the output is empty")
	}
	if !complete {
		p.a.Say("the output is cut off: the program wrote %s; worker %s may have the whole output in its files "+
			"([worker] task_output_filename)", format.Size(bytes), r.Worker)
	}
	return nil
}

// printTail prints the last known lines of a round's output. Redis contains no other output of this round.
func (p *printout) printTail(t *manager.Task) error {
	r := p.r
	state := "has ended without a result"
	if !admin.RoundEnded(t, p.round) {
		state = "is running"
	}
	p.a.Say("round %d on %s %s; the last known lines of stdout and stderr:", p.round, r.Worker, state)
	return p.print(r.Tail)
}

func (p *printout) print(text string) error {
	if p.a.Terminal.Out && !p.raw {
		text = format.Printable(text)
	}
	_, err := io.WriteString(p.a.Stdout, text)
	return err
}
