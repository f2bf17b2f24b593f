package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
)

// A printout is a call of output.
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
		Use: "output ID", Short: "Print what a task's program printed",
		Long: "Prints what the program of a task printed to stdout in the round that ran last: to the byte, but on a terminal with control characters shown as such.\n" +
			"Of a round that runs now it prints what is known, the last 4 KiB of stdout and stderr together, and with --follow what comes, to its end.",
		Example: "  tdf output 17 --error",
		Args:    one("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			if p.id, err = parseID(args[0]); err != nil {
				return usage("%q is not the id of a task", args[0])
			}
			switch given := c.Flags().Changed("round"); {
			case !given && p.follow:
				p.round = currentRound
			case !given:
				p.round = lastRound
			case p.round < 0:
				return usage("--round %d has to be from 0 up", p.round)
			}
			if p.m, err = a.manager(c.Context()); err != nil {
				return err
			}
			defer p.m.Close()
			return p.run(c.Context())
		},
	}
	c.Flags().IntVar(&p.round, "round", 0, "of round `N`; the first is 0 (default: the one that ran last; with --follow the one that runs, or waits to)")
	c.Flags().BoolVar(&p.stderr, "error", false, "what it printed to stderr")
	c.Flags().BoolVarP(&p.follow, "follow", "f", false, "go on until the round has ended")
	c.Flags().BoolVar(&p.raw, "raw", false, "as it is, though it may do things to the terminal")
	return c
}

func (p *printout) run(ctx context.Context) error {
	t, err := p.read(ctx)
	if err != nil {
		return err
	}
	if p.follow && !over(t, p.round) {
		return p.followRound(ctx, t)
	}
	if len(p.text(t)) == 0 && t.Rounds.At(p.round).Tail != "" {
		return p.last(t)
	}
	return p.whole(t)
}

// read reads the round; from then on it is the same one.
func (p *printout) read(ctx context.Context) (*tdf.Task, error) {
	t, round, err := p.m.printed(ctx, p.id, p.round)
	if errors.Is(err, tdf.ErrNoTask) {
		err = p.a.noTask(ctx, p.m, p.id)
	}
	p.round = round
	return t, err
}

// over says whether a round has ended.
func over(t *tdf.Task, round int) bool {
	return t.Round != round || t.State != tdf.Open && t.State != tdf.Running
}

func (p *printout) text(t *tdf.Task) string {
	if p.stderr {
		return t.Rounds.At(p.round).Error
	}
	return t.Rounds.At(p.round).Output
}

// whole prints what the round has left in Redis, and says where the rest is.
func (p *printout) whole(t *tdf.Task) error {
	r := t.Rounds.At(p.round)
	switch {
	case t.Round == p.round && t.State == tdf.Open:
		p.a.say("task %d waits to be run: there is no output yet (tdf explain %d)", t.ID, t.ID)
	case !over(t, p.round):
		p.a.say("round %d runs on %s, and has not printed anything yet", p.round, r.Worker)
	}
	if err := p.print(p.text(t)); err != nil {
		return err
	}
	printed, complete := r.OutputBytes, outputWhole(r)
	if p.stderr {
		printed, complete = r.ErrorBytes, errorWhole(r)
	}
	switch {
	case !over(t, p.round):
	case p.text(t) == "" && !p.stderr && r.Error != "":
		p.a.say("it printed nothing to stdout, and %s to stderr: --error shows that", bytesText(int64(len(r.Error))))
	case p.text(t) == "" && r.Tail == "":
		p.a.say("it printed nothing there")
	}
	if !complete {
		p.a.say("this is cut: %s were printed; all of it is in the files of worker %s ([worker] task_output_filename)", bytesText(printed), r.Worker)
	}
	return nil
}

// last prints the tail of a round that has nothing else.
func (p *printout) last(t *tdf.Task) error {
	r := t.Rounds.At(p.round)
	how := "has ended without a result"
	if !over(t, p.round) {
		how = "runs"
	}
	p.a.say("round %d on %s %s: these are the last lines that are known, of stdout and stderr", p.round, r.Worker, how)
	return p.print(r.Tail)
}

func (p *printout) print(text string) error {
	if p.a.style.out && !p.raw {
		text = printable(text)
	}
	_, err := io.WriteString(p.a.stdout, text)
	return err
}

const followPause = 500 * time.Millisecond

// followRound prints what comes until the round has ended.
func (p *printout) followRound(ctx context.Context, t *tdf.Task) error {
	var tail tailing
	if t.State == tdf.Open {
		p.sayWaits(t)
	} else {
		p.a.say("round %d on %s: what it prints comes from the worker's next heartbeat on, within 10 s by default", p.round, t.Rounds.At(p.round).Worker)
	}
	for !over(t, p.round) {
		if err := p.more(&tail, t.Rounds.At(p.round).Tail); err != nil {
			return err
		}
		if err := p.m.admin().Follow(ctx, p.id); err != nil {
			return err
		}
		if err := sleep(ctx, followPause); err != nil {
			return err
		}
		var err error
		if t, err = p.read(ctx); err != nil {
			return err
		}
	}
	return p.rest(&tail, t)
}

func (p *printout) sayWaits(t *tdf.Task) {
	before := ""
	if t.Round > 0 {
		before = fmt.Sprintf("; what it printed before: tdf output %d", t.ID)
	}
	p.a.say("task %d waits to be run, in round %d (tdf explain %d)%s", t.ID, p.round, t.ID, before)
}

func (p *printout) more(tail *tailing, text string) error {
	news, skipped := tail.news(text)
	if skipped {
		p.a.say("(some of it was missed)")
	}
	return p.print(news)
}

// rest prints what came after the last tail.
func (p *printout) rest(tail *tailing, t *tdf.Task) error {
	if t.Rounds.At(p.round).Worker == "" {
		p.a.say("round %d did not run: task %d is %s", p.round, t.ID, t.State)
	}
	text := p.text(t)
	if text == "" && t.Rounds.At(p.round).Tail != "" {
		return p.more(tail, t.Rounds.At(p.round).Tail)
	}
	at := tail.end(text)
	if at < 0 {
		p.a.say("the round has ended; all that it printed: tdf output %d --round %d", t.ID, p.round)
		return nil
	}
	return p.print(text[at:])
}

// A tailing prints a text of which only the end is ever seen.
type tailing struct {
	seen  string // the last tail
	all   []byte // all that was printed, as long as nothing was missed and it is not too much
	leaky bool   // it is not all
}

// mostRemembered bounds what is kept to tell where the end goes on.
const mostRemembered = 4 << 20

// news returns what of the tail was not in the one before, and whether something between them was missed.
func (f *tailing) news(tail string) (text string, skipped bool) {
	if tail == "" { // not yet, or not any more
		return "", false
	}
	before := f.seen
	f.seen = tail
	defer func() { f.remember(text, skipped) }()
	for n := min(len(before), len(tail)); n > 0; n-- {
		if strings.HasSuffix(before, tail[:n]) {
			return tail[n:], false
		}
	}
	return tail, before != ""
}

func (f *tailing) remember(text string, skipped bool) {
	f.leaky = f.leaky || skipped || len(f.all)+len(text) > mostRemembered
	if f.all = append(f.all, text...); f.leaky {
		f.all = nil
	}
}

// end returns where a text goes on that ends like the tail; -1: it cannot be told.
func (f *tailing) end(text string) int {
	if !f.leaky && strings.HasPrefix(text, string(f.all)) {
		return len(f.all)
	}
	const enough = 200
	last := f.seen[max(0, len(f.seen)-enough):]
	if last == "" {
		return 0
	}
	if i := strings.LastIndex(text, last); i >= 0 && i == strings.Index(text, last) {
		return i + len(last)
	}
	return -1
}
