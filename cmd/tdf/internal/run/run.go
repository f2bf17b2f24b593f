package run

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/worker/resources"
)

// A run holds the flags of tdf run.
type run struct {
	a       *cli.App
	changed func(flag string) bool
	dir     string // in which the command runs, absolute

	lines, null, link   bool
	argFiles            []string
	delimiter, colsep   string
	grid, from, format  string
	maxArgs, maxReplace int
	maxChars            int
	xargs, spread, shuf bool
	pipe                bool
	block               size
	literal             bool
	jobs, load          jobCount
	delay               string
	memfree             size
	wd                  string
	shared, ownDir      bool
	send, sendEach, env []string
	envAll              bool
	retries             int
	halt                halt
	campaign            string
	keepOrder, tag, bar bool
	quiet               bool
	output, errorFile   string
	joblog, results     string
	resume              bool
	dryRun, detach      bool
	ignored             bool // what GNU parallel needs a flag for, and tdf run does anyway
	after               cli.AfterFlags
	task                cli.TaskFlags

	pause time.Duration // --delay
}

// Run returns the command.
func Run(a *cli.App) *cobra.Command {
	r := &run{a: a, block: 1 << 20}
	r.jobs = jobCount{n: resources.Cores(), cores: resources.Cores()}
	r.load.cores = r.jobs.cores
	c := &cobra.Command{
		Use:   "run [FLAGS] [--] COMMAND [ARG…] [::: VALUE…] [:::: FILE…]",
		Short: "Run a command once for each input",
		Long: `Runs a command once for each input, several at a time, and prints what each prints. The exit status says how
many failed; without inputs, it is that of the command.

The inputs are the lines of stdin (--lines) or of files (--arg-file, or after "::::"), the rows of a file (--from), the
points of a grid (--grid), or the values after ":::". With several sources, each combination is an input; the values
after ":::+" and "::::+" belong to those before. In the command, {} stands for the value, {.} for the value without
its extension, {/} for the last element of a path, {//} for the directory before it, {/.} for the last element without
its extension, {#} for the number of the input, {%} for the number of the slot, {2} for the value of the second source,
and {name} for the value of a column. A value stays a part of its word, because no shell reads it. Without a
placeholder, the values follow the command. {{x}} stands for the text {x}; ${x} and other texts in braces that look
like no placeholder stay as they are. Without a command, each input is a line for sh.

The command runs on this machine, in the current directory. If no Redis is configured, tdf starts one for the time of
the call. With --shared, the workers of the configured TDF run it, in the same directory of their machines; with
--send, they run it in a directory that has the files that you send, and with --send-each '{}', the files of its input.

With --fetch, files that a command made come back into the current directory, when it has succeeded.

With --joblog, tdf writes a line for each task that has finished. With --resume as well, it runs only the commands that
have not succeeded according to this file.

GNU parallel's other flags are refused, with the flag that does the same: docs/from-parallel.md.`,
		Example: `  ls *.wav | tdf run --lines -- ffmpeg -i {} {.}.mp3
  tdf run --grid 'rate=0.1..0.9/0.1 seed=1..10' -- python3 sim.py --rate {rate} --seed {seed}
  tdf run --from points.csv --results out.csv -- ./sim {rate}
  tdf run -j 4 --joblog log --resume -- ./convert {} ::: a b c
  tdf run --send sim.py --fetch 'out/*' -- python3 sim.py {} ::: 1 2 3
  id=$(tdf run --shared --detach -- ./sim 1) && tdf wait "$id"`,
		RunE: func(c *cobra.Command, args []string) error { return cli.Exit(r.run(c.Context(), args)) },
	}
	c.SetFlagErrorFunc(flagError)
	c.Flags().SetInterspersed(false)
	r.changed = c.Flags().Changed
	r.addFlags(c.Flags())
	r.after.Flags(c.Flags())
	r.task.Flags(c)
	return c
}

// flagError returns the error for an invalid flag, and for one of GNU parallel that tdf run refuses.
func flagError(c *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var instead refusal
	if errors.As(err, &invalid) && errors.As(err, &instead) {
		return cli.Exit(cli.Usagef("--%s of GNU parallel is not supported: %s", invalid.GetFlag().Name, string(instead)))
	}
	return cli.Exit(cli.FlagError(c, err))
}

func (r *run) run(ctx context.Context, args []string) error {
	command, sources, err := r.parse(args)
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
	t := r.newTemplate(command)
	err = r.checkPlace(tool, t.command)
	if err != nil {
		return err
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

// parse returns the command and the sources of its inputs. Without both, the inputs are the lines of stdin.
func (r *run) parse(args []string) (command []string, sources []source, err error) {
	command, sources, err = split(args)
	if err != nil {
		return nil, nil, err
	}
	if len(command)+len(sources)+len(r.argFiles) == 0 && r.from+r.grid == "" && !r.pipe && !cli.IsTerminal(r.a.Stdin) {
		r.lines = true
	}
	sources, err = r.allSources(sources)
	if err != nil {
		return nil, nil, err
	}
	return command, sources, r.check(command, sources)
}

// newTemplate returns the template of a command, or of the lines for a shell if there is none.
func (r *run) newTemplate(command []string) *template {
	named := r.from+r.grid != ""
	t := &template{command: command, named: named, literal: r.literal, context: r.context(), unused: r.pipe}
	if len(command) == 0 {
		t.command, t.inShell, t.literal = []string{"sh", "-c", "--"}, true, true
	}
	other := func(words ...string) *template {
		if !r.mayDiffer(strings.Join(words, "")) {
			return nil
		}
		o := &template{command: words, named: named, unused: true, isName: true}
		t.others = append(t.others, o)
		return o
	}
	t.fetch = other(strings.Split(*r.task.Text["fetch"], ",")...)
	for _, name := range r.sendEach {
		t.sendEach = append(t.sendEach, r.file(name, other))
	}
	t.wd = other(r.wd)
	if !r.writesTable() {
		t.results = other(r.results)
	}
	t.wrap.output, t.wrap.errors = r.file(r.output, other), r.file(r.errorFile, other)
	return t
}

// file returns the template of a file's name, which may have no placeholders, or nil without a name.
func (r *run) file(name string, other func(...string) *template) *template {
	t := other(name)
	if t == nil && name != "" {
		t = &template{command: []string{name}, literal: true, unused: true}
	}
	return t
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
	if r.wd == "" || r.mayDiffer(r.wd) {
		return dir, nil
	}
	dir = below(dir, r.wd)
	if r.elsewhere() || r.dryRun {
		return dir, nil
	}
	return dir, makeDir(dir)
}

// makeDir makes the directory of a command, as GNU parallel does.
func makeDir(dir string) error {
	err := os.MkdirAll(dir, 0o755)
	if err != nil {
		return cli.Usagef("--wd: %v", err)
	}
	return nil
}

// below returns a path as the commands in a directory see it.
func below(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// show prints the commands.
func (r *run) show(t *template, in *inputs) error {
	number := int64(0)
	for row, err := range in.rows {
		if err != nil {
			return cli.Usagef("%v", err)
		}
		number++
		line, err := t.input(&row, number)
		if err != nil {
			return err
		}
		if !t.inShell {
			words, err := t.fill(&row, number)
			if err != nil {
				return err
			}
			shown := plain(words)
			for i, w := range shown {
				shown[i] = cli.ShellWord(w)
			}
			line.shown = strings.Join(shown, " ")
		}
		_, err = fmt.Fprintln(r.a.Stdout, format.Printable(line.shown))
		if err != nil {
			return err
		}
	}
	return nil
}

// carryOut opens the tasks, runs them, and waits for them.
func (r *run) carryOut(ctx context.Context, tool config.Tool, c *campaign) error {
	pipes := make(chan os.Signal, 1) // so that the call ends its commands if nothing reads stdout any more
	signal.Notify(pipes, syscall.SIGPIPE)
	defer signal.Stop(pipes)
	log, err := openJobLog(r.a.Path(r.joblog), r.resume)
	if err != nil {
		return err
	}
	defer log.close()
	if r.writesTable() {
		c.rows, err = openResults(r.a.Path(r.results), r.resume)
		if err != nil {
			return err
		}
	}
	defer c.rows.close()
	c.files, err = r.openResultsDir(c.template.results)
	if err != nil {
		return cli.Usagef("--results: %v", err)
	}
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
		if err == nil {
			err = c.makeBlocks()
		}
		if err == nil {
			err = c.define(ctx)
		}
		if err == nil {
			err = c.endEarlier(ctx)
		}
		if err != nil {
			return err
		}
		return c.carryOut(ctx)
	})
	return errors.Join(err, c.here.stop(r.a.Force))
}
