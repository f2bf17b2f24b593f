package run

import (
	"strings"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/config"
)

// check refuses invalid combinations of flags and arguments.
func (r *run) check(command []string, sources []source) error {
	for _, wrong := range r.conflicts(command, sources) {
		if wrong.is {
			return cli.Usagef("%s", wrong.text)
		}
	}
	if r.delay != "" {
		pause, err := cli.ParseSpanFlag("delay", r.delay)
		if err != nil {
			return err
		}
		r.pause = pause.Std()
	}
	return r.task.Check()
}

// A conflict is a combination of flags that is refused if it is there.
type conflict struct {
	is   bool
	text string
}

func (r *run) conflicts(command []string, sources []source) []conflict {
	inputs := len(sources) > 0 || r.from+r.grid != ""
	kinds := 0
	for _, is := range []bool{r.from != "", r.grid != "", len(sources) > 0} {
		if is {
			kinds++
		}
	}
	return append([]conflict{
		{len(command) == 0 && len(sources) == 0, "missing command: want tdf run [FLAGS] -- COMMAND [ARG…]"},
		{kinds > 1, "several kinds of inputs: want one of --from, --grid, and values or lines"},
		{
			len(command) == 0 && (len(sources) > 1 || r.colsep != "" || r.groups() || r.pipe),
			"missing command: without one, each input is a line for sh, so there is one source, and an input has one column",
		},
		{r.format != "" && r.from == "", "--format without --from: there is no file to read"},
		{
			(r.null || r.delimiter+r.colsep != "") && len(sources) == 0,
			"--null, --delimiter or --colsep without lines: want --lines, --arg-file, :::: or :::",
		},
		{r.null && r.delimiter != "", "--null with --delimiter: give one of them"},
		{r.resume && r.joblog == "", "--resume without --joblog: name the file that says what has succeeded"},
		{
			r.literal && r.from+r.grid != "",
			"--literal with --from or --grid: without placeholders, the command cannot use their columns",
		},
		{
			r.jobs.given && r.changed("resources"),
			"--jobs with --resources: as many commands run at a time as fit; give one of them",
		},
		{r.changed("retries") && r.retries < 1, "invalid value for --retries: want 1 or more; the first run counts"},
		{
			r.changed("retries") && r.changed("max-fails"),
			"--retries with --max-fails: both set the same number; give one of them",
		},
		{min(r.maxArgs, r.maxReplace, r.maxChars) < 0 || r.changed("max-args") && r.maxArgs == 0 ||
			r.changed("max-replace-args") && r.maxReplace == 0, "--max-args, --max-replace-args or --max-chars: want 1 or more"},
		{r.maxChars > 0 && !r.groups(), "--max-chars without several inputs for a command: want --xargs, -X, -n or -N"},
		{
			r.groups() && (len(sources) != 1 || r.colsep != ""),
			"several inputs for a command: want one source, such as --lines, and no --colsep",
		},
		{
			(r.groups() || r.pipe) && !r.writesTable() && r.sameFile(r.results),
			"--results DIR with several inputs for a command, or with --pipe: want a placeholder, such as out-{#}/",
		},
		{
			strings.HasSuffix(r.results, ".tsv") || strings.HasSuffix(r.results, ".json"),
			"--results: a table has the format of CSV; want a name that ends with .csv",
		},
		{inputs && r.sameFile(r.output), "--output names one file for all commands: want a placeholder, such as out-{#}"},
		{inputs && r.sameFile(r.errorFile), "--error names one file for all commands: want a placeholder, such as err-{#}"},
	}, r.placeConflicts(sources)...)
}

// placeConflicts are the conflicts about where the commands run.
func (r *run) placeConflicts(sources []source) []conflict {
	return []conflict{
		{
			r.sends() && (r.shared || r.ownDir),
			"--send or --send-each with --shared or --own-dir: files that are sent have a directory of their own",
		},
		{
			r.wd != "" && (r.sends() || r.ownDir),
			"--wd with --send, --send-each or --own-dir: the command runs in a directory of its own",
		},
		{r.wd == "...", "--wd ... of GNU parallel is not supported: --own-dir gives each command a directory"},
		{r.changed("fetch") && r.detach, "--fetch with --detach: the call ends before there are files to bring back"},
		{
			r.changed("fetch") && !r.sends() && !r.ownDir,
			"--fetch without --send or --own-dir: the command runs in this directory, so its files are here",
		},
		{
			!r.elsewhere() && (r.changed("queue") || r.changed("tags")),
			"--queue or --tags without --shared or --send: they choose workers, and the command runs here",
		},
		{r.elsewhere() && r.jobs.given, "--jobs with --shared or --send: the workers' concurrency says how many commands " +
			"run at a time; tdf limit KEY N and --limit-key KEY limit them"},
		{r.elsewhere() && (r.delay != "" || r.load.given || r.memfree > 0), "--delay, --load or --memfree with --shared or " +
			"--send: they are for this machine; tdf limit KEY --rate 1/2s with --limit-key KEY, or --resources, limit " +
			"the workers"},
		{
			r.detach && !r.elsewhere(),
			"--detach without --shared or --send: the command runs on this machine, as long as tdf run does",
		},
		{
			r.detach && r.joblog+r.results+r.halt.why != "",
			"--detach with --joblog, --results or --halt: the call ends before the tasks do; see tdf results",
		},
		{r.changed("block") && !r.pipe, "--block without --pipe: there are no blocks"},
		{r.pipe && r.elsewhere(), "--pipe with --shared or --send: the blocks are files of this machine"},
		{
			r.pipe && (r.from+r.grid != "" || len(sources) > 1 || len(sources) == 1 && sources[0].path == ""),
			"--pipe with inputs: it reads stdin, or the file of --arg-file",
		},
		{
			r.pipe && (r.groups() || r.colsep+r.delimiter != "" || r.null || r.shuf || r.resume || r.dryRun || r.halt.percent),
			"--pipe gives each command a block of lines: it cannot be used with several inputs for a command, --colsep, " +
				"--delimiter, --null, --shuf, --resume, --dry-run or --halt with N%",
		},
	}
}

// sameFile reports whether all commands would write the same file.
func (r *run) sameFile(path string) bool { return path != "" && !r.mayDiffer(path) }

// elsewhere reports whether the workers of the configured TDF run the command.
func (r *run) elsewhere() bool { return r.shared || r.sends() }

// sends reports whether the command runs in a directory with files that the call sends.
func (r *run) sends() bool { return len(r.send)+len(r.sendEach) > 0 }

func (r *run) checkPlace(tool config.Tool, command []string) error {
	switch {
	case len(tool.Namespaces) > 1:
		return cli.Usagef("[tdf] namespaces is set: tdf run works in one namespace; name it with --namespace")
	case r.after.Given() && !isConfigured(tool):
		return cli.Usagef("--after without a TDF: name its Redis with --config or --redis HOST:PORT")
	case r.elsewhere() && !isConfigured(tool):
		return cli.Usagef("--shared or --send without a TDF: name its Redis with --config or --redis HOST:PORT")
	case r.elsewhere():
		return nil
	}
	return r.lookPath(command[0])
}
