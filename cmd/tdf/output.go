package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
)

// A printout holds the flags of tdf output and the id of its task.
type printout struct {
	a      *app
	m      *client
	id     int64
	round  int
	stderr bool
	follow bool
	raw    bool
}

func newOutput(a *app) *cobra.Command {
	p := printout{a: a}
	c := &cobra.Command{
		Use: "output ID", Short: "Print the output of a task's program",
		Long: "Prints what the program of a task wrote to stdout in its last run, byte for byte. A terminal shows control characters as escapes.\n" +
			"While the program runs, the command prints the last 4 KiB of its stdout and stderr. --follow waits for the rest.",
		Example: "  tdf output 17 --error",
		Args:    exactlyOne("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			if p.id, err = parseID(args[0]); err != nil {
				return err
			}
			switch given := c.Flags().Changed("round"); {
			case !given && p.follow:
				p.round = currentRound
			case !given:
				p.round = lastRound
			case p.round < 0:
				return usage("invalid value %d for --round: want a number from 0", p.round)
			}
			return a.withManager(c.Context(), func(m *client) error {
				p.m = m
				return p.run(c.Context())
			})
		},
	}
	c.Flags().IntVar(&p.round, "round", 0, "`N` round, from 0 (default: the last round that ran; with --follow, the current round)")
	c.Flags().BoolVar(&p.stderr, "error", false, "print stderr instead of stdout")
	c.Flags().BoolVarP(&p.follow, "follow", "f", false, "print output as it arrives, until the round ends")
	c.Flags().BoolVar(&p.raw, "raw", false, "print control characters as they are, even on a terminal")
	return c
}

func (p *printout) run(ctx context.Context) error {
	t, err := p.read(ctx)
	if err != nil {
		return err
	}
	if p.follow && !roundOver(t, p.round) {
		return p.followRound(ctx, t)
	}
	if len(p.text(t)) == 0 && t.Rounds.At(p.round).Tail != "" {
		return p.printTail(t)
	}
	return p.printWhole(t)
}

// read reads the task. The first call also decides which round tdf output prints.
func (p *printout) read(ctx context.Context) (*tdf.Task, error) {
	t, round, err := p.m.printed(ctx, p.id, p.round)
	if errors.Is(err, tdf.ErrNoTask) {
		err = p.a.noTask(ctx, p.m, p.id)
	}
	p.round = round
	return t, err
}

// roundOver reports whether a round has ended.
func roundOver(t *tdf.Task, round int) bool {
	return t.Round != round || t.State != tdf.Open && t.State != tdf.Running
}

// text returns the stdout or stderr of the round.
func (p *printout) text(t *tdf.Task) string {
	if p.stderr {
		return t.Rounds.At(p.round).Error
	}
	return t.Rounds.At(p.round).Output
}

// printWhole prints the output that Redis has. If the output is empty or incomplete, printWhole says why.
func (p *printout) printWhole(t *tdf.Task) error {
	r := t.Rounds.At(p.round)
	switch {
	case t.Round == p.round && t.State == tdf.Open:
		p.a.say("task %d has no output yet: it is open (see tdf explain %d)", t.ID, t.ID)
	case !roundOver(t, p.round):
		p.a.say("round %d runs on %s and has no output yet", p.round, r.Worker)
	}
	if err := p.print(p.text(t)); err != nil {
		return err
	}
	bytes, complete := r.OutputBytes, outputWhole(r)
	if p.stderr {
		bytes, complete = r.ErrorBytes, errorWhole(r)
	}
	switch {
	case !roundOver(t, p.round):
	case p.text(t) == "" && !p.stderr && r.Error != "":
		p.a.say("stdout is empty; --error prints %s of stderr", size(int64(len(r.Error))))
	case p.text(t) == "" && r.Tail == "":
		p.a.say("the output is empty")
	}
	if !complete {
		p.a.say("the output is cut off: the program wrote %s; worker %s may have it all in its files ([worker] task_output_filename)", size(bytes), r.Worker)
	}
	return nil
}

// printTail prints the last lines of a round whose whole output is not in Redis.
func (p *printout) printTail(t *tdf.Task) error {
	r := t.Rounds.At(p.round)
	state := "has ended without a result"
	if !roundOver(t, p.round) {
		state = "is running"
	}
	p.a.say("round %d on %s %s; the last known lines of stdout and stderr:", p.round, r.Worker, state)
	return p.print(r.Tail)
}

func (p *printout) print(text string) error {
	if p.a.terminal.out && !p.raw {
		text = printable(text)
	}
	_, err := io.WriteString(p.a.stdout, text)
	return err
}
