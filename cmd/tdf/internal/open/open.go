package open

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/program"
	"github.com/tdf-framework/tdf/sweep"
)

// An opening holds the flags of tdf open.
type opening struct {
	a       *cli.App
	changed func(flag string) bool

	program, source, input string
	from, format, grid     string
	campaign               string
	unique, uniqueUntil    string
	extend, dryRun         bool
	halt, shards           int
	handler                bool
	task                   cli.TaskFlags
	after                  afterFlags
	periodic               periodicFlags
}

func Open(a *cli.App) *cobra.Command {
	o := &opening{a: a}
	c := &cobra.Command{
		Use:   "open --program DIR|NAME [--source SOURCE|--handler] [--input WORDS]",
		Short: "Open one task or a sweep",
		Long: `Opens one task. With --from or --grid, the command opens a sweep: one task for each row of parameters, in a campaign.

If the program is a directory, tdf packs it and stores it in Redis first, as tdf push does. With --handler, the task
has no source: only workers with a handler for the program run it.

In a sweep, --input is a template. The text {a} stands for the value of parameter a as one word, and {a|raw} for the
value without quotes. Write {{ and }} for braces. Without --input, run.sh gets all parameters in their order. The
parameters also become the meta of the task, as JSON.

tdf checks a file of rows to its end before it opens tasks. If the rows come from stdin (-), it opens tasks as rows
arrive. It prints the ids of the tasks as ranges: 1-1000.

With --halt N, a server pauses the campaign when N of its tasks have failed or timed out, as parallel --halt
soon,fail=N does. Running tasks go on. tdf resume --campaign NAME continues.

With --every and --name, the command opens no task: it stores a periodic, whose tasks the servers open at each time of
the schedule (docs/periodic.md). tdf periodic lists, pauses and runs it. A periodic has at most 250 tasks.`,
		Example: `  tdf open --program ./simulate --input '--rate 0.5'
  tdf open --program ./simulate --from points.csv --input '--rate {rate} --mode {mode}' --campaign first
  tdf open --program ./simulate --grid 'rate=0.1..0.9/0.1 mode=fast,exact' --campaign first --extend
  tdf open --program ./plot --campaign plots --after-campaign first
  tdf open --program ./report --every '30 3 * * *' --zone Europe/Berlin --name nightly`,
		Args: cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	flags := c.Flags()
	o.changed = flags.Changed
	flags.StringVar(&o.program, "program", "",
		"`DIR|NAME` directory with run.sh at its top, or a name together with --source or --handler")
	flags.StringVar(&o.source, "source", "", "`SOURCE` address from which workers fetch the program")
	flags.BoolVar(&o.handler, "handler", false,
		"task without a source: only workers with a handler for the program run it")
	flags.StringVar(&o.input, "input", "", "`WORDS` arguments of run.sh; in a sweep, a template")
	flags.StringVar(&o.from, "from", "", "`FILE` CSV file or JSON lines with rows of parameters, or - for stdin")
	flags.StringVar(&o.format, "format", "",
		"`FORMAT` format of the rows, csv or jsonl (default: the suffix of the file)")
	flags.StringVar(&o.grid, "grid", "",
		"`VALUES` values of parameters; each combination is a task: 'a=1..10 b=x,y c=1e-3..5e-3/1e-3'")
	flags.StringVar(&o.campaign, "campaign", "", "`NAME` name of the campaign (sets the tasks' group)")
	flags.StringVar(&o.campaign, "group", "", "`NAME` same as --campaign")
	flags.BoolVar(&o.extend, "extend", false,
		"extension of a campaign that has tasks; a sweep adds only points that the campaign does not have")
	flags.BoolVar(&o.dryRun, "dry-run", false, "number of tasks and list of the first few, without any change")
	flags.IntVar(&o.halt, "halt", 0, "`N` pause of the campaign as soon as N of its tasks have failed or timed out; "+
		"a server does this, so the terminal may close")
	flags.IntVar(&o.shards, "shards", 1,
		"`N` spread of a sweep over the first N of [tdf] namespaces (docs/shards.md)")
	flags.StringVar(&o.unique, "unique", "",
		"`KEY` no new task if a task already holds this key; then the id of that task")
	flags.StringVar(&o.uniqueUntil, "unique-until", "",
		"`STATE` state in which the task gives its key back: finished (default) or archived")
	o.task.Flags(c)
	o.after.flags(c)
	o.periodic.flags(c)
	return c
}

func (o *opening) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	s, err := o.sweep(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	tool, err := o.a.Tool()
	if err != nil {
		return err
	}
	packed, err := o.packed()
	if err != nil {
		return err
	}
	return o.a.WithShardsOf(ctx, tool, func(all *cli.Shards) error {
		if o.shards > len(all.All) {
			return cli.Usagef("invalid value %d for --shards: [tdf] namespaces has %s", o.shards,
				format.Counted(len(all.All), "namespace"))
		}
		var plans plans
		for i := range o.shards {
			p := &plan{
				opening: o, all: all, m: all.All[i], shard: i, sweep: s, packed: packed, points: sweep.Tally{},
			}
			if err := p.prepare(ctx, tool); err != nil {
				if ctx.Err() != nil {
					o.a.Say("interrupted; nothing was opened")
				}
				return err
			}
			plans = append(plans, p)
			o.campaign = p.base.Group // a name that the first plan has made up
		}
		plans[0].sayRules()
		if o.dryRun {
			return plans.show()
		}
		if o.periodic.Schedule != "" {
			return plans[0].storePeriodic(ctx)
		}
		return plans.carryOut(ctx)
	})
}

// check refuses invalid combinations of flags.
func (o *opening) check() error {
	switch {
	case o.program == "":
		return cli.Usagef("missing --program: want a directory, or a name with --source SOURCE or --handler")
	case o.handler && o.source != "":
		return cli.SourceWithHandler()
	case o.changed("campaign") && o.changed("group"):
		return cli.Usagef("--campaign with --group: both set the same name; give one of them")
	case o.from != "" && o.grid != "":
		return cli.Usagef("--from with --grid: each makes a sweep; give one of them")
	case o.changed("halt") && o.halt < 1:
		return cli.Usagef("invalid value %d for --halt: want at least 1", o.halt)
	case o.shards < 1:
		return cli.Usagef("invalid value %d for --shards: want at least 1", o.shards)
	case o.shards > 1 && o.from == "" && o.grid == "":
		return cli.Usagef("--shards without --from or --grid: a single task is in one namespace")
	case o.shards > 1 && o.after.HasTasks():
		return cli.Usagef("--shards with --after or --after-any: a task waits only for tasks of its own namespace; " +
			"--after-campaign and --after-same wait in each namespace")
	case o.shards > 1 && o.changed("every"):
		return cli.Usagef("--shards with --every: a periodic is in one namespace")
	case o.format != "" && o.from == "":
		return cli.Usagef("--format without --from: there is no file to read")
	case o.after.same != "" && o.from == "" && o.grid == "":
		return cli.Usagef("--after-same without --from or --grid: a single task has no parameters; name the tasks " +
			"with --after")
	case o.changed("meta") && (o.from != "" || o.grid != ""):
		return cli.Usagef("--meta in a sweep: the parameters become the meta; leave --meta out")
	}
	if err := o.periodic.check(o); err != nil {
		return err
	}
	return o.checkUnique()
}

func (o *opening) checkUnique() error {
	switch {
	case o.unique != "" && (o.from != "" || o.grid != ""):
		return cli.Usagef("--unique in a sweep: all tasks would have the same key, so only one would be opened; " +
			"leave --unique out, or see --extend")
	case o.changed("unique-until") && o.unique == "":
		return cli.Usagef("--unique-until without --unique: there is no key")
	}
	return o.task.Check()
}

// If the program is a directory, packed packs and returns it. If the program is a name, packed returns nil.
func (o *opening) packed() (*program.Packed, error) {
	info, err := os.Stat(o.a.Path(o.program))
	isDir := err == nil && info.IsDir()
	switch {
	case isDir && o.source == "" && !o.handler:
		packed, err := program.Pack(o.a.Path(o.program))
		if err != nil {
			return nil, cli.Usagef("%v", err)
		}
		return &packed, nil
	case isDir && o.handler && strings.ContainsRune(o.program, '/'):
		return nil, cli.HandlerWithDirectory(o.program)
	case isDir && strings.ContainsRune(o.program, '/'):
		return nil, cli.Usagef("--source with the directory %s: tdf stores a directory in Redis; leave --source out",
			o.program)
	case o.source == "" && !o.handler:
		return nil, cli.NotADirectory(o.program)
	}
	return nil, nil
}

// failOn returns the rule by which a round fails. If the user has not chosen it here, and it is not the usual rule,
// warning describes it.
func (o *opening) failOn(tool config.Tool) (rule task.FailOn, warning string) {
	if o.changed("fail-on") {
		return task.FailOn(*o.task.Text["fail-on"]), ""
	}
	rule = tool.Manager.TaskDefaults.FailOn
	switch rule {
	case task.FailOnStderr:
		warning = "a round fails if it prints anything to stderr"
	case task.FailOnAny:
		warning = "a round fails if it prints anything to stderr, or if its exit status is not 0"
	default:
		return rule, ""
	}
	return rule, fmt.Sprintf("%s (the configuration sets fail_on=%s)", warning, rule)
}
