package steer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/program"
)

// A steering is a command that changes the tasks of a selection: retry, cancel, archive, rm, requeue or set.
type steering struct {
	a    *cli.App
	verb rules.Verb
	name string // the command's name
	past string // participle for messages about changed tasks, such as "cancelled"

	states   []task.State // states to select if the user gives no id, state or outcome
	outcomes []string     // outcomes to select if the user gives no id, state or outcome
	scope    string       // message about the eligible states, printed if a selected task is in another state

	filter     cli.Filter
	all        bool
	yes        bool
	dryRun     bool
	elsewhere  bool         // used only by requeue
	dependents bool         // used only by retry: also the tasks that failed because of the selected tasks
	callback   bool         // used only by retry: the callbacks run again, and not the tasks
	changes    *cli.Changes // used only by retry and set; nil in other commands
}

// command adds the arguments and flags that all these commands have in common.
func (s *steering) command(c *cobra.Command) *cobra.Command {
	s.filter.Changes = s.changes != nil
	s.filter.Flags(c)
	s.name = c.Use
	c.Use += " [ID…] [FILTER]"
	c.Flags().BoolVar(&s.all, "all", false, "every eligible task, if no ids and no filters are given")
	c.Flags().BoolVarP(&s.yes, "yes", "y", false, "yes as the answer to every question")
	c.Flags().BoolVar(&s.dryRun, "dry-run", false, "list of the affected ids, without any change")
	c.RunE = func(c *cobra.Command, args []string) error { return s.run(c.Context(), args) }
	return c
}

func (s *steering) run(ctx context.Context, args []string) error {
	if !s.all && !s.filter.Given(args) {
		return cli.Usagef("no tasks selected: want ids, a filter such as --campaign NAME, or --all")
	}
	if err := s.filter.Check(args, ""); err != nil {
		return err
	}
	if s.changes != nil {
		if err := s.changes.Check(); err != nil {
			return err
		}
	}
	return s.a.WithShards(ctx, func(all *cli.Shards) error { return s.steer(ctx, all, args) })
}

// steer selects tasks, prints the selection, and changes the eligible tasks.
func (s *steering) steer(ctx context.Context, all *cli.Shards, args []string) error {
	act, packed, err := s.plan(ctx, all.All[0])
	if err != nil {
		return err
	}
	chosen, err := s.selectTasks(ctx, all, args)
	if err != nil {
		return err
	}
	s.a.Say("%s: %s", s.name, chosen)
	s.sayNotEligible(chosen)
	dependents, err := s.findDependents(ctx, all, chosen.eligible)
	if err != nil {
		return err
	}
	switch {
	case len(chosen.eligible) == 0:
	case s.dryRun:
		err = s.list(append(chosen.eligible, dependents...))
	default:
		act.From = chosen.states
		err = s.carryOut(ctx, all, act, packed, chosen, dependents)
	}
	if err == nil && len(chosen.skipped) > 0 {
		return cli.ErrProblems
	}
	return err
}

// plan returns the change to make. If --program is a directory, plan also packs and returns the program.
func (s *steering) plan(ctx context.Context, m *cli.Client) (act manager.Action, packed *program.Packed, err error) {
	act = manager.Action{Verb: s.verb, Elsewhere: s.elsewhere}
	if s.changes == nil {
		return act, nil, nil
	}
	if act.Changes, packed, err = s.changes.Read(ctx, m); err == nil {
		act.Each, err = s.changes.Each(act.Changes)
	}
	return act, packed, err
}

// carryOut asks for confirmation, stores the new program and changes the tasks.
func (s *steering) carryOut(ctx context.Context, all *cli.Shards, act manager.Action, packed *program.Packed,
	chosen *choice, dependents []manager.Ref,
) error {
	if err := s.a.Confirm(ctx, s.name, s.yes); err != nil {
		return err
	}
	for _, m := range all.All {
		used := slices.ContainsFunc(chosen.eligible, func(r manager.Ref) bool { return r.Namespace == m.Namespace() })
		if packed != nil && used {
			if err := cli.StoreProgram(ctx, m, *packed, s.a.Say); err != nil {
				return err
			}
		}
	}
	acted, err := all.Do(ctx, act, chosen.eligible...)
	if err == nil && len(dependents) > 0 {
		var more manager.Result
		more, err = all.Do(ctx, manager.Action{Verb: rules.VerbReopen}, dependents...)
		acted.Done, acted.Skipped = acted.Done+more.Done, append(acted.Skipped, more.Skipped...)
	}
	s.report(acted, cli.MayHaveChanged(err))
	if s.verb == rules.VerbReopen && acted.Done > 0 {
		s.a.Say("progress: %s", cli.WatchCommand(chosen.campaign))
	}
	if err == nil && len(acted.Skipped) > 0 {
		return cli.ErrProblems
	}
	return err
}

// findDependents returns the tasks that have failed because of the selected tasks, if --with-dependents is given.
func (s *steering) findDependents(ctx context.Context, all *cli.Shards, chosen []manager.Ref) ([]manager.Ref, error) {
	if !s.dependents || len(chosen) == 0 {
		return nil, nil
	}
	found, err := all.Dependents(ctx, chosen...)
	if err != nil {
		return found, err
	}
	s.a.Say("with %s that failed because of them", format.Tasks(int64(len(found))))
	return found, nil
}

// report prints how many tasks were changed, and which were skipped. If unsure is true, Redis may also have changed the
// tasks of the last call.
func (s *steering) report(acted manager.Result, unsure bool) {
	more := ""
	if unsure {
		more = ", and perhaps more: Redis did not answer"
	}
	s.a.Say("%s: %d%s", s.past, acted.Done, more)
	var refused []string
	for _, err := range acted.Skipped {
		// the error begins with the verb of the transition, and users know only the name of the command
		refused = append(refused, strings.TrimPrefix(err.Error(), string(s.verb)+" "))
	}
	s.saySkipped(refused)
	if slices.ContainsFunc(acted.Skipped, isPast) {
		s.a.Say("set a later end: tdf %s … --end-before TIME, such as +2h (from now) or inf", s.name)
	}
}

func isPast(err error) bool { return errors.Is(err, manager.ErrPast) }

// list prints the ids for --dry-run.
func (s *steering) list(chosen []manager.Ref) error {
	for _, one := range chosen {
		if _, err := fmt.Fprintln(s.a.Stdout, manager.TaskName(one.Namespace, one.ID)); err != nil {
			return err
		}
	}
	return nil
}
