package main

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/program"
)

// An opening is one call of tdf open: its flags.
type opening struct {
	a       *app
	changed func(flag string) bool

	program, source, input string
	from, format, grid     string
	campaign               string
	extend, dryRun         bool
	task                   taskFlags
}

func newOpen(a *app) *cobra.Command {
	o := &opening{a: a}
	c := &cobra.Command{
		Use:   "open --program DIR|NAME [--source SOURCE] [--input WORDS]",
		Short: "Open one task, or a sweep of them",
		Long: `Open one task, or with --from or --grid a sweep: a task for each row of parameters, as a campaign with a name.

A program that is a directory is packed and stored in Redis first, as tdf push does.

In a sweep --input is a template: {a} stands for the value of parameter a, and stays one word whatever it
holds; {a|raw} puts it in as it is; {{ and }} are braces. Without --input all parameters are passed in their
order. They also become the tasks' meta, as JSON.

A file of rows is checked to its end before anything is opened; from stdin (-) tasks are opened as rows come.
The ids of the tasks are printed, as ranges: 1-1000.`,
		Example: `  tdf open --program ./simulate --input '--rate 0.5'
  tdf open --program ./simulate --from points.csv --input '--rate {rate} --mode {mode}' --campaign first
  tdf open --program ./simulate --grid 'rate=0.1..0.9/0.1 mode=fast,exact' --campaign first --extend`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	flags := c.Flags()
	o.changed = flags.Changed
	flags.StringVar(&o.program, "program", "", "the program: a `DIR` with run.sh in it, or a name with --source")
	flags.StringVar(&o.source, "source", "", "where workers get the program: `SOURCE`")
	flags.StringVar(&o.input, "input", "", "the arguments of run.sh, in a sweep with places for parameters: `WORDS`")
	flags.StringVar(&o.from, "from", "", "rows of parameters from this `FILE`.csv or .jsonl, or from stdin: -")
	flags.StringVar(&o.format, "format", "", "what is in the file, where its name does not say so: `csv or jsonl`")
	flags.StringVar(&o.grid, "grid", "", "all combinations of these `VALUES`: 'a=1..10 b=x,y c=1e-3..5e-3/1e-3'")
	flags.StringVar(&o.campaign, "campaign", "", "the `NAME` of what belongs together (the tasks' group)")
	flags.StringVar(&o.campaign, "group", "", "the same as --campaign: `NAME`")
	flags.BoolVar(&o.extend, "extend", false, "into a campaign that has tasks: of a sweep only the points that it does not have")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show the first few tasks and how many there are, and open none")
	o.task.flags(c)
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
	tool, err := o.a.tool()
	if err != nil {
		return err
	}
	packed, err := o.packed()
	if err != nil {
		return err
	}
	m, err := o.a.managerOf(ctx, tool)
	if err != nil {
		return err
	}
	defer m.Close()
	p := &plan{opening: o, m: m, sweep: s, packed: packed, points: tally{}}
	if err := p.prepare(ctx, tool); err != nil {
		if ctx.Err() != nil {
			o.a.say("interrupted; nothing was opened")
		}
		return err
	}
	p.sayRules()
	if o.dryRun {
		return p.show()
	}
	return p.carryOut(ctx)
}

// check is about flags that do not go together.
func (o *opening) check() error {
	switch {
	case o.program == "":
		return usage("which program? --program DIR, or --program NAME --source SOURCE")
	case o.changed("campaign") && o.changed("group"):
		return usage("--campaign and --group are the same; give one of them")
	case o.from != "" && o.grid != "":
		return usage("--from and --grid are two sweeps; give one of them")
	case o.format != "" && o.from == "":
		return usage("--format says what is in the file of --from, and there is none")
	case o.changed("meta") && (o.from != "" || o.grid != ""):
		return usage("--meta is refused in a sweep: the parameters become the tasks' meta")
	}
	return o.task.check()
}

// packed returns the program if it is a directory; nil: it is a name.
func (o *opening) packed() (*program.Packed, error) {
	info, err := os.Stat(o.program)
	isDir := err == nil && info.IsDir()
	switch {
	case isDir && o.source == "":
		packed, err := program.Pack(o.program)
		if err != nil {
			return nil, usage("%v", err)
		}
		return &packed, nil
	case isDir && strings.ContainsRune(o.program, '/'):
		return nil, usage("--program %s is a directory, which is stored in Redis; --source goes with a program's name", o.program)
	case o.source == "":
		return nil, usage("--program %s is no directory here; a program that is elsewhere needs --source SOURCE (docs/programs.md)", o.program)
	}
	return nil, nil
}

// failOn says which rule holds, and why.
func (o *opening) failOn(tool config.Tool) (rule, why string) {
	switch {
	case o.changed("fail-on"):
		return o.task.failOn, "as --fail-on says"
	case tool.IsSet("task_defaults", "fail_on"):
		return string(tool.Manager.TaskDefaults.FailOn), "as the configuration says"
	}
	return "exit", "a task fails when its exit status is not 0 (--fail-on says otherwise)"
}
