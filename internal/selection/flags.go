package selection

import (
	"strings"

	"github.com/spf13/pflag"
)

// Flags adds the flags of the filter to a set, without the ids, which are arguments. If changes is true, the flags
// --queue and --param change tasks, and those of the filter have other names.
func (f *Filter) Flags(flags *pflag.FlagSet, changes bool) {
	queue, param := "queue", "param"
	if changes {
		queue, param = "in-queue", "with-param"
	}
	flags.StringSliceVar(&f.States, "state", nil, "`STATE` one or more states: "+strings.Join(States(), ", "))
	flags.StringSliceVar(&f.Outcomes, "outcome", nil, "`OUTCOME` one or more outcomes, also of archived tasks: "+
		strings.Join(Outcomes(), ", "))
	flags.StringVar(&f.Group, "campaign", "", "`NAME` name of the campaign (the tasks' group)")
	flags.StringVar(&f.Queue, queue, "", "`NAME` name of the queue, or default for the tasks without a queue")
	flags.StringVar(&f.Owner, "owner", "", "`TOKEN` name of the token that has opened the task")
	flags.StringVar(&f.Program, "of", "", "`PROGRAM` name of the program; * and ? are wildcards")
	flags.StringVar(&f.Worker, "worker", "", "`NAME` name of the worker of the last run")
	flags.StringVar(&f.Exit, "exit", "",
		"`STATUS` exit status of the last run: 0 to 255, a signal such as 'signal: killed', or 'signal' for any signal")
	flags.StringVar(&f.OlderThan, "older-than", "", "`SPAN` minimum time in the current state, such as 90s or 2h")
	flags.StringVar(&f.NewerThan, "newer-than", "", "`SPAN` maximum time in the current state")
	flags.StringArrayVar(&f.Params, param, nil,
		"`NAME=VALUE` value of a parameter, such as rate=0.5; several flags select tasks with all of them")
	flags.StringVar(&f.Input, "input-has", "", "`TEXT` text in the input")
	flags.StringVar(&f.Output, "output-has", "", "`TEXT` text in the stdout of the last run")
	flags.StringVar(&f.Error, "error-has", "", "`TEXT` text in the stderr of the last run")
	flags.StringVar(&f.Failure, "failure", "", "`ID` failure group of the last failure, from tdf failures")
	if !changes { // tdf retry --callback has another meaning
		flags.StringVar(&f.Callback, "callback", "",
			"`STATE` tasks whose callbacks are in this state: failed, which means for good")
	}
	flags.StringVar(&f.FailureBy, "by", "", "`RULE` line by which failures are grouped: first-line, last-line, or a "+
		"regular expression (default: the most informative line)")
}
