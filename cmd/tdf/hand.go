package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/program"
)

// A hand is a command that does something to the tasks that its arguments and filters name.
type hand struct {
	a      *app
	filter filter
	verb   tdf.Verb
	past   string // what was done to them

	question string      // what confirm asks instead of the verb
	states   []tdf.State // that a filter means by itself

	outcomes []string    // likewise
	from     []tdf.State // in which tasks are meant; none: in any

	everything, yes, dryRun bool
	elsewhere               bool     // requeue
	with                    *changes // retry, set
}

// command completes c by what all of these have in common.
func (h *hand) command(c *cobra.Command) *cobra.Command {
	h.filter.flags(c)
	c.Use += " [ID…] [FILTER]"
	c.Flags().BoolVar(&h.everything, "all", false, "all tasks that it can be done to, where nothing else is asked for")
	c.Flags().BoolVarP(&h.yes, "yes", "y", false, "do not ask")
	c.Flags().BoolVar(&h.dryRun, "dry-run", false, "only say which tasks it would be")
	c.RunE = func(c *cobra.Command, args []string) error { return h.run(c.Context(), args) }
	return c
}

func (h *hand) run(ctx context.Context, args []string) error {
	if !h.everything && !h.filter.names(args) {
		return usage("which tasks? Name ids, a filter such as --campaign NAME, or --all")
	}
	if err := h.filter.check(args, ""); err != nil {
		return err
	}
	if h.with != nil {
		if err := h.with.check(); err != nil {
			return err
		}
	}
	m, err := h.a.manager(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	act, packed, err := h.plan(ctx, m)
	if err != nil {
		return err
	}
	found, err := h.meant(ctx, m, args)
	if err != nil {
		return err
	}
	h.a.say("%s: %s", h.verbName(), describe(found.in))
	h.tellLeft(found)
	switch {
	case len(found.able) == 0:
	case h.dryRun:
		err = h.list(found.able)
	default:
		err = h.carryOut(ctx, m, act, packed, found.able)
	}
	if err == nil && len(found.left) > 0 {
		return errNotWell
	}
	return err
}

// carryOut does it to these, if that is really what is wanted.
func (h *hand) carryOut(ctx context.Context, m *client, act taskAction, packed *program.Packed, found []taskRef) error {
	if err := h.confirm(ctx); err != nil {
		return err
	}
	if packed != nil {
		if err := h.a.store(ctx, m, *packed); err != nil {
			return err
		}
	}
	act.From = h.from
	acted, err := m.act(ctx, act, found...)
	h.tell(acted)
	if h.verb == tdf.VerbReopen && acted.Done > 0 {
		h.a.say("how far they are: %s", watchCommand(h.filter.campaign))
	}
	if err == nil && len(acted.Skipped) > 0 {
		return errNotWell
	}
	return err
}

// plan reads what is to be done, and packs the program that it may be done with.
func (h *hand) plan(ctx context.Context, m *client) (act taskAction, packed *program.Packed, err error) {
	act = taskAction{Verb: h.verb, Elsewhere: h.elsewhere}
	if h.with != nil {
		act.Changes, packed, err = h.with.read(ctx, m)
	}
	return act, packed, err
}

// verbName is the verb as the user has typed it.
func (h *hand) verbName() string { return names[h.verb] }

var names = map[tdf.Verb]string{
	tdf.VerbReopen: "retry", tdf.VerbCancel: "cancel", tdf.VerbArchive: "archive",
	tdf.VerbRemove: "rm", tdf.VerbRelease: "requeue", tdf.VerbChange: "set",
}

func (h *hand) list(found []taskRef) error {
	for _, f := range found {
		if _, err := fmt.Fprintln(h.a.stdout, f.ID); err != nil {
			return err
		}
	}
	return nil
}

// confirm asks a person; whoever is none has to say --yes.
func (h *hand) confirm(ctx context.Context) error {
	if h.yes {
		return nil
	}
	if !isTerminal(h.a.stdin) {
		return usage("nothing was done: there is no terminal to ask at; --yes does it without asking")
	}
	fmt.Fprintf(h.a.stderr, "%s? [y/N] ", cmp.Or(h.question, h.verbName()))
	answer, err := bufio.NewReader(interruptible(ctx, h.a.stdin)).ReadString('\n')
	if ctx.Err() != nil {
		h.a.say("")
		return context.Cause(ctx)
	}
	if err != nil || !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))) {
		h.a.say("nothing was done")
		return errNotWell
	}
	return nil
}

func (h *hand) tell(acted taskResult) {
	h.a.say("%s: %d", h.past, acted.Done)
	var refused []string
	for _, err := range acted.Skipped {
		refused = append(refused, strings.TrimPrefix(err.Error(), string(h.verb)+" ")) // the user knows it by another name
	}
	h.name(refused)
	if slices.ContainsFunc(acted.Skipped, isPast) {
		h.a.say("tdf %s … --end-before TIME gives them more time: +2h from now, say, or inf", h.verbName())
	}
}

func isPast(err error) bool { return errors.Is(err, manager.ErrPast) }

// ended are the states from which a task can be opened again.
var ended = []tdf.State{tdf.Succeeded, tdf.Failed, tdf.TimedOut, tdf.Expired, tdf.Archived}

func newCancel(a *app) *cobra.Command {
	h := &hand{a: a, verb: tdf.VerbCancel, past: "cancelled", states: []tdf.State{tdf.Open, tdf.Running}}
	return h.command(&cobra.Command{
		Use: "cancel", Short: "Give up tasks that are open or running",
		Long:    "Gives up tasks that are open or running: they expire, with the outcome cancelled. What runs is ended by its worker.",
		Example: "  tdf cancel --campaign grid --state open",
	})
}

func newArchive(a *app) *cobra.Command {
	h := &hand{a: a, verb: tdf.VerbArchive, past: "archived", states: ended[:4]}
	return h.command(&cobra.Command{
		Use: "archive", Short: "Put tasks away that have been seen",
		Long:    "Archives tasks that succeeded, failed, timed out or expired, as a manager does when it has seen them. They stay readable.",
		Example: "  tdf archive --campaign grid --state succeeded",
	})
}

func newRemove(a *app) *cobra.Command {
	h := &hand{a: a, verb: tdf.VerbRemove, past: "removed", states: ended}
	return h.command(&cobra.Command{
		Use: "rm", Short: "Remove finished tasks, with all that they printed",
		Long:    "Removes finished tasks from Redis: their properties, outputs, logs and updates. Nothing brings them back but a dump.\nThe workers' own files stay as long as the workers keep them.",
		Example: "  tdf rm --campaign grid --state archived --older-than 720h",
	})
}

func newRequeue(a *app) *cobra.Command {
	h := &hand{a: a, verb: tdf.VerbRelease, past: "requeued", states: []tdf.State{tdf.Running}}
	c := h.command(&cobra.Command{
		Use: "requeue", Short: "Take running tasks from their workers; they run again",
		Long: "Takes running tasks from their workers, which end the programs with the next renewal of their leases. The tasks are open again, at the\n" +
			"back of the queue. This counts as a release, and as none of the failures.",
		Example: "  tdf requeue --worker node-7 --elsewhere",
	})
	c.Flags().BoolVar(&h.elsewhere, "elsewhere", false, "not on the workers that have them now")
	return c
}

func newRetry(a *app) *cobra.Command {
	h := &hand{a: a, with: &changes{}, verb: tdf.VerbReopen, past: "opened again", states: []tdf.State{tdf.Failed, tdf.TimedOut, tdf.Expired}}
	c := h.command(&cobra.Command{
		Use: "retry", Short: "Open finished tasks again, with a mended program if you like",
		Long: "Opens finished tasks again: each gets one more round. A filter means those that failed, timed out or expired, unless --state says otherwise;\n" +
			"ids mean whatever has ended, also what succeeded or is archived. Properties can be changed on the way: see tdf set.",
		Example: "  tdf retry --failure 5f3a --program ./mended",
	})
	h.with.addTo(c)
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if h.filter.failure != "" { // these are also found where a manager has archived them
			h.states, h.outcomes = nil, []string{string(tdf.Failed), string(tdf.TimedOut), string(tdf.Expired)}
		}
		return run(c, args)
	}
	return c
}

func newSet(a *app) *cobra.Command {
	h := &hand{a: a, with: &changes{}, verb: tdf.VerbChange, past: "changed", states: []tdf.State{tdf.Open}}
	c := h.command(&cobra.Command{
		Use: "set", Short: "Change open tasks in place",
		Long:    "Changes properties of open tasks. They keep their place in the queue, unless --start-after changes.",
		Example: "  tdf set --campaign grid --timeout 10m --max-fails 2",
	})
	h.with.addTo(c)
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if !h.with.any() {
			return usage("what is to be set? --input, --timeout, --program, … (tdf set --help lists all)")
		}
		return run(c, args)
	}
	return c
}
