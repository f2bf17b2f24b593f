package run

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/resources"
	"github.com/tdf-framework/tdf/program"
)

// A run holds the flags of tdf run.
type run struct {
	a       *cli.App
	changed func(flag string) bool
	dir     string // in which the command runs, absolute

	grid, from, format string
	lines, null        bool
	literal            bool
	shared, ownDir     bool
	send               []string
	jobs               count
	halt, retries      int
	campaign           string
	keepOrder, tag     bool
	quiet              bool
	joblog, results    string
	resume             bool
	dryRun, detach     bool
	task               cli.TaskFlags
}

// Run returns the command.
func Run(a *cli.App) *cobra.Command {
	r := &run{a: a}
	c := &cobra.Command{
		Use:   "run [--lines|--from FILE|--grid VALUES] -- COMMAND [ARG…] [::: VALUE…]",
		Short: "Run a command once for each input",
		Long: `Runs a command once for each input, several at a time, and prints what each prints. The exit status says how
many failed.

The inputs are the lines of stdin (--lines), the rows of a file (--from), the points of a grid (--grid), or the values
after ":::"; with several ":::", each combination. In the command, {} stands for the value, {.} for the value without
its extension, {/} for the last element of a path, {//} for the directory before it, {/.} for the last element without
its extension, {#} for the number of the input, and {name} for the value of a column. A value stays a part of its word,
because no shell reads it. Without a placeholder, the values of --lines and ":::" follow the command. {{x}} stands for
the text {x}; ${x} and other texts in braces that look like no placeholder stay as they are.

The command runs on this machine, in the current directory. If no Redis is configured, tdf starts one for the time of
the call. With --shared, the workers of the configured TDF run it, in the same directory of their machines; with
--send, they run it in a directory that has the files that you send.

With --fetch, files that a command made come back into the current directory, when it has succeeded.

With --joblog, tdf writes a line for each task that has finished. With --resume as well, it runs only the commands that
have not succeeded according to this file.`,
		Example: `  ls *.wav | tdf run --lines -- ffmpeg -i {} {.}.mp3
  tdf run --grid 'rate=0.1..0.9/0.1 seed=1..10' -- python3 sim.py --rate {rate} --seed {seed}
  tdf run --from points.csv --results out.csv -- ./sim {rate}
  tdf run -j 4 --joblog log --resume -- ./convert {} ::: a b c
  tdf run --send sim.py --fetch 'out/*' -- python3 sim.py {} ::: 1 2 3
  tdf run --shared --detach --from points.csv -- ./sim {rate}`,
		RunE: func(c *cobra.Command, args []string) error { return cli.Exit(r.run(c.Context(), args)) },
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return cli.Exit(cli.FlagError(c, err)) })
	flags := c.Flags()
	flags.SetInterspersed(false)
	r.changed = flags.Changed
	flags.BoolVar(&r.lines, "lines", false, "read the inputs from stdin, one on each line")
	flags.BoolVarP(&r.null, "null", "0", false, "with --lines: end each input with a NUL byte instead of a newline")
	flags.StringVar(&r.from, "from", "", "`FILE` CSV file or JSON lines with rows of parameters, or - for stdin")
	flags.StringVar(&r.format, "format", "", "`FORMAT` format of the rows, csv or jsonl (default: the suffix of the file)")
	flags.StringVar(&r.grid, "grid", "", "`VALUES` values of parameters; each combination is an input: 'a=1..10 b=x,y'")
	flags.BoolVar(&r.literal, "literal", false, "leave braces in the command as they are, so that it has no placeholders")
	r.jobs = count(resources.Cores())
	flags.VarP(&r.jobs, "jobs", "j", "`N` number of commands that run at a time on this machine")
	flags.BoolVarP(&r.keepOrder, "keep-order", "k", false, "print the outputs in the order of the inputs")
	flags.BoolVar(&r.tag, "tag", false, "begin each line of output with the input and a tab")
	flags.BoolVarP(&r.quiet, "quiet", "q", false, "print no output of commands and no progress")
	flags.IntVar(&r.retries, "retries", 0, "`N` run a failed command up to N times more")
	flags.IntVar(&r.halt, "halt", 0, "`N` start no more commands when N have failed")
	flags.StringVar(&r.joblog, "joblog", "", "`FILE` write a line for each finished task, as GNU parallel does")
	flags.BoolVar(&r.resume, "resume", false, "leave out commands that have succeeded according to --joblog")
	flags.StringVar(&r.results, "results", "", "`FILE` write a CSV file with the parameters and results at the end; --resume keeps its rows")
	flags.BoolVar(&r.dryRun, "dry-run", false, "print the commands, and run none")
	flags.BoolVar(&r.ownDir, "own-dir", false,
		"run each command in an empty directory of its own, which is removed afterwards")
	flags.BoolVar(&r.shared, "shared", false,
		"let the workers of the configured TDF run the command, in the same directory of their machines")
	flags.StringArrayVar(&r.send, "send", nil,
		"`PATH` let the workers of the configured TDF run the command, in a directory with this file or directory; "+
			"may be repeated")
	flags.BoolVar(&r.detach, "detach", false, "with --shared or --send: end when the tasks are opened")
	flags.StringVar(&r.campaign, "campaign", "", "`NAME` name of the campaign (default: the command and the time)")
	r.task.Flags(c)
	return c
}

func (r *run) run(ctx context.Context, args []string) error {
	command, sources, err := split(args)
	if err != nil {
		return err
	}
	err = r.check(command, sources)
	if err != nil {
		return err
	}
	r.dir, err = r.directory()
	if err != nil {
		return err
	}
	tool, err := r.a.Tool()
	if err != nil {
		return err
	}
	err = r.checkPlace(tool, command)
	if err != nil {
		return err
	}
	t := &template{command: command, named: r.from+r.grid != "", literal: r.literal}
	patterns := *r.task.Text["fetch"]
	if r.mayDiffer(patterns) {
		t.fetch = &template{command: strings.Split(patterns, ","), named: t.named, unused: true}
	}
	in, err := r.openInputs(ctx, sources, t)
	if err != nil {
		return err
	}
	defer in.close()
	if r.dryRun {
		return r.show(t, in)
	}
	return r.carryOut(ctx, tool, &campaign{run: r, in: in, template: t})
}

// check refuses invalid combinations of flags and arguments.
func (r *run) check(command []string, sources [][]string) error {
	given := 0
	for _, is := range []bool{r.lines, r.from != "", r.grid != "", len(sources) > 0} {
		if is {
			given++
		}
	}
	switch {
	case len(command) == 0:
		return cli.Usagef("missing command: want tdf run [FLAGS] -- COMMAND [ARG…]")
	case given > 1:
		return cli.Usagef("several kinds of inputs: want one of --lines, --from, --grid and :::")
	case r.format != "" && r.from == "":
		return cli.Usagef("--format without --from: there is no file to read")
	case r.null && !r.lines:
		return cli.Usagef("--null without --lines: there are no lines to read")
	case r.resume && r.joblog == "":
		return cli.Usagef("--resume without --joblog: name the file that says what has succeeded")
	case r.literal && r.from+r.grid != "":
		return cli.Usagef("--literal with --from or --grid: without placeholders, the command cannot use their columns")
	case r.changed("jobs") && r.changed("resources"):
		return cli.Usagef("--jobs with --resources: as many commands run at a time as fit; give one of them")
	case r.changed("halt") && r.halt < 1:
		return cli.Usagef("invalid value %d for --halt: want at least 1", r.halt)
	case r.retries < 0:
		return cli.Usagef("invalid value %d for --retries: want 0 or more", r.retries)
	case r.changed("retries") && r.changed("max-fails"):
		return cli.Usagef("--retries with --max-fails: both set the same number; give one of them")
	case len(r.send) > 0 && (r.shared || r.ownDir):
		return cli.Usagef("--send with --shared or --own-dir: files that are sent have a directory of their own")
	case r.changed("fetch") && r.detach:
		return cli.Usagef("--fetch with --detach: the call ends before there are files to bring back")
	case r.changed("fetch") && len(r.send) == 0 && !r.ownDir:
		return cli.Usagef("--fetch without --send or --own-dir: the command runs in this directory, so its files are here")
	case !r.elsewhere() && (r.changed("queue") || r.changed("tags")):
		return cli.Usagef("--queue or --tags without --shared or --send: they choose workers, and the command runs here")
	case r.detach && !r.elsewhere():
		return cli.Usagef("--detach without --shared or --send: the command runs on this machine, as long as tdf run does")
	case r.detach && r.joblog+r.results != "":
		return cli.Usagef("--detach with --joblog or --results: the command ends before the tasks do; see tdf results")
	}
	return r.task.Check()
}

// A count is the value of a flag: a whole number from 1. A sign is refused, because it has another meaning in GNU
// parallel.
type count int

func (n *count) String() string { return strconv.Itoa(int(*n)) }
func (*count) Type() string     { return "count" }

func (n *count) Set(text string) error {
	v, err := strconv.ParseUint(text, 10, 31)
	if err == nil && v == 0 {
		err = strconv.ErrRange
	}
	*n = count(v)
	return err
}

// elsewhere reports whether the workers of the configured TDF run the command.
func (r *run) elsewhere() bool { return r.shared || len(r.send) > 0 }

func (r *run) checkPlace(tool config.Tool, command []string) error {
	switch {
	case len(tool.Namespaces) > 1:
		return cli.Usagef("[tdf] namespaces is set: tdf run works in one namespace; name it with --namespace")
	case r.elsewhere() && !isConfigured(tool):
		return cli.Usagef("--shared or --send without a TDF: name its Redis with --config or --redis HOST:PORT")
	case r.elsewhere():
		return nil
	}
	return r.lookPath(command[0])
}

// isConfigured reports whether the user says where a Redis is.
func isConfigured(tool config.Tool) bool {
	for _, key := range []string{"host", "port", "sentinels", "cluster"} {
		if tool.IsSet("redis", key) {
			return true
		}
	}
	return tool.File != ""
}

func (r *run) directory() (string, error) {
	dir, err := filepath.Abs(r.a.Path("."))
	if err != nil {
		return "", fmt.Errorf("find the current directory: %w; change to a directory that exists", err)
	}
	return dir, nil
}

// show prints the commands.
func (r *run) show(t *template, in *inputs) error {
	number := int64(0)
	for row, err := range in.rows {
		if err != nil {
			return cli.Usagef("%v", err)
		}
		number++
		words, err := t.fill(&row, number)
		if err != nil {
			return err
		}
		for i, w := range words {
			words[i] = cli.ShellWord(w)
		}
		fmt.Fprintln(r.a.Stdout, format.Printable(strings.Join(words, " ")))
	}
	return nil
}

// carryOut opens the tasks, runs them, and waits for them.
func (r *run) carryOut(ctx context.Context, tool config.Tool, c *campaign) error {
	log, err := openJobLog(r.a.Path(r.joblog), r.resume)
	if err != nil {
		return err
	}
	defer log.close()
	c.rows, err = openResults(r.a.Path(r.results), r.resume)
	if err != nil {
		return err
	}
	defer c.rows.close()
	c.log, c.began, c.id = log, time.Now(), strings.ToLower(rand.Text()[:8])
	c.here, err = r.startRedis(&tool)
	if err != nil {
		return err
	}
	said := r.a.Log
	if !r.elsewhere() { // otherwise, the manager would miss the server, which is only about to say that it runs
		r.a.Log = slog.New(slog.DiscardHandler)
	}
	err = r.a.WithManagerOf(ctx, tool, func(m *cli.Client) error {
		c.m, r.a.Log = m, said
		err := c.here.startWorker(ctx, c, tool)
		if err != nil {
			return err
		}
		err = c.define(ctx)
		if err != nil {
			return err
		}
		return c.carryOut(ctx)
	})
	return errors.Join(err, c.here.stop())
}

// define determines the properties that all tasks have.
func (c *campaign) define(ctx context.Context) error {
	name, source := c.programName(), task.SchemeExec+":"+c.dir
	if c.ownDir {
		source = task.SchemeExec + ":"
	}
	if len(c.send) > 0 {
		packed, err := c.pack()
		if err != nil {
			return err
		}
		err = cli.StoreProgram(ctx, c.a, c.m, packed)
		if err != nil {
			return err
		}
		name, source = packed.Name, packed.Source
	}
	changes, err := c.task.Read(ctx, c.m)
	if err != nil {
		return err
	}
	c.base = changes.Apply(c.m.Define(name, source, ""))
	if len(c.send) > 0 {
		c.base.Generations = 0 // the input is a command, so a worker that opened tasks would choose what others run
	}
	c.base.Group = c.campaignName(name)
	if c.changed("retries") {
		c.base.MaxFails = c.retries
	}
	if !c.elsewhere() {
		c.base.Queue, c.base.Tags, c.base.ByGroup = "", c.here.tags, c.here.tags != nil
	}
	if c.here.temporary && c.results == "" {
		c.base.KeepArchived = 0 // so that an endless input needs no endless memory
	}
	return nil
}

// programName returns the name of the program of the tasks, unless files are sent.
func (c *campaign) programName() string {
	first := c.template.command[0]
	if c.mayDiffer(first) {
		return "command"
	}
	return program.NameAfter(first[strings.LastIndexByte(first, '/')+1:])
}

func (c *campaign) campaignName(name string) string {
	if c.run.campaign != "" {
		return c.run.campaign
	}
	stamp := c.began.UTC().Format("-20060102-150405-") + c.id
	return strings.ToValidUTF8(name[:min(len(name), task.MaxName-len(stamp))], "") + stamp
}
