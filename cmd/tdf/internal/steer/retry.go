package steer

import (
	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
)

func Retry(a *cli.App) *cobra.Command {
	s := &steering{
		a: a, changes: &cli.Changes{}, verb: tdf.VerbReopen, past: "retried", states: []tdf.State{tdf.Failed, tdf.TimedOut, tdf.Expired},
		scope: "tdf retry applies to finished tasks; tdf requeue takes running tasks from their workers",
	}
	c := s.command(&cobra.Command{
		Use: "retry", Short: "Run finished tasks again",
		Long: "Runs finished tasks again: each gets one more round. By default, filters select only tasks that failed, timed out or expired.\n" +
			"The flags --state and --outcome select other finished tasks. Ids select any finished task. The flags of tdf set change properties of\n" +
			"the tasks before they run.",
		Example: "  tdf retry --failure 5f3a --program ./corrected\n  tdf retry 17 --with-dependents",
	})
	s.changes.AddTo(c)
	c.Flags().BoolVar(&s.dependents, "with-dependents", false, "also the tasks that failed because they waited for the selected tasks; changes do not apply to them")
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if s.filter.Failure != "" { // outcomes instead of states, because a manager may have archived the failed tasks
			s.states, s.outcomes = nil, []string{string(tdf.Failed), string(tdf.TimedOut), string(tdf.Expired)}
		}
		return run(c, args)
	}
	return c
}
