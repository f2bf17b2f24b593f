package steer

import (
	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
)

func Archive(a *cli.App) *cobra.Command {
	s := &steering{
		a: a, verb: rules.VerbArchive, past: "archived", states: task.SettledStates,
		scope: "tdf archive applies to tasks that succeeded, failed, timed out or expired",
	}
	return s.command(&cobra.Command{
		Use: "archive", Short: "Archive finished tasks",
		Long: "Archives tasks that succeeded, failed, timed out or expired. A manager archives its tasks itself, " +
			"after the callback has returned.\n" +
			"Use this command for tasks that no manager handles. Archived tasks keep their outputs.",
		Example: "  tdf archive --campaign grid --state succeeded\n  tdf archive 17 18",
	})
}

func Cancel(a *cli.App) *cobra.Command {
	s := &steering{
		a: a, verb: rules.VerbCancel, past: "cancelled", states: []task.State{task.Open, task.Running},
		scope: "tdf cancel applies to open and running tasks",
	}
	return s.command(&cobra.Command{
		Use: "cancel", Short: "Cancel open and running tasks",
		Long: "Cancels open and running tasks. Their state becomes expired, and their outcome cancelled. If a task " +
			"is running, its\n" +
			"worker ends the program.",
		Example: "  tdf cancel --campaign grid --state open\n  tdf cancel 17",
	})
}

func Requeue(a *cli.App) *cobra.Command {
	s := &steering{
		a: a, verb: rules.VerbRelease, past: "requeued", states: []task.State{task.Running},
		scope: "tdf requeue applies to running tasks",
	}
	c := s.command(&cobra.Command{
		Use: "requeue", Short: "Take running tasks from their workers and run them again",
		Long: "Takes running tasks from their workers. The tasks are open again, at the end of the queue. A worker " +
			"ends the program of a requeued task\n" +
			"when the worker next renews its leases. The round does not count as a failure.",
		Example: "  tdf requeue --worker node-7 --elsewhere\n  tdf requeue 17",
	})
	c.Flags().BoolVar(&s.elsewhere, "elsewhere", false, "next round on any worker except the current one")
	return c
}

func Retry(a *cli.App) *cobra.Command {
	s := &steering{
		a: a, changes: &cli.Changes{}, verb: rules.VerbReopen, past: "retried", states: []task.State{
			task.Failed,
			task.TimedOut, task.Expired,
		},
		scope: "tdf retry applies to finished tasks; tdf requeue takes running tasks from their workers",
	}
	c := s.command(&cobra.Command{
		Use: "retry", Short: "Run finished tasks again",
		Long: "Runs finished tasks again: each gets one more round. By default, filters select only tasks that " +
			"failed, timed out or expired.\n" +
			"The flags --state and --outcome select other finished tasks. Ids select any finished task. The flags " +
			"of tdf set change properties of\n" +
			"the tasks before they run.",
		Example: "  tdf retry --failure 5f3a --program ./corrected\n  tdf retry 17 --with-dependents",
	})
	s.changes.AddTo(a, c)
	c.Flags().BoolVar(&s.callback, "callback", false,
		"run the callbacks again that have failed for good, and not the tasks")
	c.Flags().BoolVar(&s.dependents, "with-dependents", false,
		"also the tasks that failed because they waited for the selected tasks; changes do not apply to them")
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if s.callback {
			return s.retryCallbacks(c.Context(), args)
		}
		if s.filter.Failure != "" { // outcomes instead of states, because a manager may have archived the failed tasks
			s.states, s.outcomes = nil, []string{string(task.Failed), string(task.TimedOut), string(task.Expired)}
		}
		return run(c, args)
	}
	return c
}

func Rm(a *cli.App) *cobra.Command {
	s := &steering{
		a: a, verb: rules.VerbRemove, past: "removed", states: task.FinishedStates,
		scope: "tdf rm applies to finished tasks; cancel others first with tdf cancel",
	}
	return s.command(&cobra.Command{
		Use: "rm", Short: "Remove finished tasks and their outputs",
		Long: "Removes finished tasks from Redis, with their properties, outputs, logs and updates.\n" +
			"The command does not remove output files on the workers. Settings of [worker] limit how long workers " +
			"keep these files.",
		Example: "  tdf rm --campaign grid --state archived --older-than 720h\n  tdf rm 17 18 --yes",
	})
}

func Set(a *cli.App) *cobra.Command {
	s := &steering{
		a: a, changes: &cli.Changes{}, verb: rules.VerbChange, past: "changed", states: []task.State{task.Open},
		scope: "tdf set applies to open tasks; tdf retry can change finished tasks",
	}
	c := s.command(&cobra.Command{
		Use: "set", Short: "Change properties of open tasks",
		Long: "Changes properties of open tasks. The tasks keep their positions in the queue, unless --start-after " +
			"moves them.",
		Example: "  tdf set --campaign grid --timeout 10m --max-fails 2\n  tdf set 17 --priority 5",
	})
	s.changes.AddTo(a, c)
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if !s.changes.Given() {
			return cli.Usagef(
				"nothing to set: want a flag such as --input, --timeout or --program; tdf set --help lists them")
		}
		return run(c, args)
	}
	return c
}
