package run

import (
	"cmp"
	"strings"

	"github.com/spf13/pflag"
)

// A flag is a row of the table of flags.
type flag struct {
	name, short string
	also        string // other names, of GNU parallel
	to          any    // the variable that gets the value
	help        string
}

// flags are the flags of tdf run, except those of the properties of tasks (cli.TaskFlags) and of dependencies.
func (r *run) flags() []flag {
	return []flag{
		{"lines", "", "", &r.lines, "read the inputs from stdin, one on each line"},
		{
			"arg-file", "a", "", &r.argFiles,
			"`FILE` read the inputs from a file, one on each line, or from stdin for -; may be repeated",
		},
		{"null", "0", "", &r.null, "a NUL byte ends each input, instead of a newline"},
		{
			"delimiter", "d", "", &r.delimiter,
			"`TEXT` text that ends each input, instead of a newline, such as , or '\\t'",
		},
		{"colsep", "C", "", &r.colsep, "`REGEXP` split each input into the columns {1}, {2} and so on"},
		{"from", "", "", &r.from, "`FILE` CSV file or JSON lines with rows of parameters, or - for stdin"},
		{"format", "", "", &r.format, "`FORMAT` format of the rows, csv or jsonl (default: the suffix of the file)"},
		{"grid", "", "", &r.grid, "`VALUES` values of parameters; each combination is an input: 'a=1..10 b=x,y'"},
		{
			"link", "", "xapply", &r.link,
			"read one value of each source for an input, instead of each combination; short sources begin again",
		},
		{"max-args", "n", "", &r.maxArgs, "`N` give each command up to N inputs; {} becomes all of them"},
		{
			"max-replace-args", "N", "", &r.maxReplace,
			"`N` as --max-args, but a word with {} in it is repeated for each input",
		},
		{
			"xargs", "", "", &r.xargs,
			"give each command as many inputs as fit into a command line; {} becomes all of them",
		},
		{
			"spread", "X", "", &r.spread,
			"as --xargs, but the last inputs are spread over all jobs, and a word with {} in it is repeated for each " +
				"input",
		},
		{"max-chars", "s", "", &r.maxChars, "`N` with several inputs for a command: limit the command line to N bytes"},
		{"shuf", "", "", &r.shuf, "run the commands in a random order"},
		{
			"pipe", "", "spreadstdin", &r.pipe,
			"split stdin, or the file of --arg-file, into blocks of whole lines, and give each command one as its " +
				"stdin",
		},
		{"block", "", "block-size", &r.block, "`SIZE` with --pipe: the size of a block (default: 1M)"},
		{"literal", "", "", &r.literal, "leave braces in the command as they are, so that it has no placeholders"},
		{
			"jobs", "j", "max-procs:P", &r.jobs,
			"`N` number of commands that run at a time on this machine: 4, or by its cores 50%, +1, -1",
		},
		{
			"delay", "", "", &r.delay,
			"`SPAN` time between the starts of two commands on this machine: 0.5 (seconds), 2s, 1m",
		},
		{
			"load", "", "", &r.load,
			"`N` start a command only while fewer processes than N run on this machine; N as for --jobs",
		},
		{"memfree", "", "", &r.memfree, "`SIZE` start a command only while this machine has this much free memory: 2G"},
		{
			"wd", "", "workdir", &r.wd,
			"`DIR` run the commands in this directory, which may have placeholders",
		},
		{"keep-order", "k", "", &r.keepOrder, "print the outputs in the order of the inputs"},
		{"tag", "", "", &r.tag, "begin each line of output with the input and a tab"},
		{"bar", "", "progress eta", &r.bar, "show the progress, even if stderr is no terminal"},
		{"quiet", "", "", &r.quiet, "print no output of commands and no progress"},
		{
			"output", "o", "", &r.output,
			"`FILE` the command writes its stdout to this file, which may have placeholders, in its directory",
		},
		{"error", "e", "", &r.errorFile, "`FILE` the same for stderr"},
		{"retries", "", "", &r.retries, "`N` run a command up to N times, until it succeeds"},
		{
			"halt", "", "halt-on-error", &r.halt,
			"`WHEN,WHY=N` end early, now or soon (when what runs has ended), after N or N% of the commands: " +
				"now,fail=1, soon,success=2, soon,done=10%",
		},
		{"joblog", "", "jl", &r.joblog, "`FILE` write a line for each finished task, as GNU parallel does"},
		{"resume", "", "resume-failed", &r.resume, "leave out commands that have succeeded according to --joblog"},
		{
			"results", "", "result res", &r.results,
			"`PATH` write a table, if the name ends with .csv; otherwise, the outputs of each command into files below " +
				"PATH, and print none",
		},
		{"dry-run", "", "dr", &r.dryRun, "print the commands, and run none"},
		{
			"own-dir", "", "", &r.ownDir,
			"run each command in an empty directory of its own, which is removed afterwards",
		},
		{
			"shared", "", "", &r.shared,
			"let the workers of the configured TDF run the command, in the same directory of their machines",
		},
		{
			"send", "", "", &r.send,
			"`PATH` let the workers of the configured TDF run the command, in a directory with this file or directory; " +
				"may be repeated",
		},
		{
			"send-each", "", "", &r.sendEach,
			"`FILE` let the workers of the configured TDF run the command, in a directory with this file, such as {}; may " +
				"be repeated",
		},
		{
			"env", "", "", &r.env,
			"`NAME` with --shared, --send or --send-each: the command gets this variable of the caller; may be repeated",
		},
		{
			"env-all", "", "", &r.envAll,
			"with --shared, --send or --send-each: the command gets all variables of the caller, except those of TDF and " +
				"of the shell",
		},
		{"detach", "", "", &r.detach, "with --shared or --send: end when the tasks are opened, and print their ids"},
		{
			"campaign", "", "", &r.campaign,
			"`NAME` name of the campaign, which may have tasks (default: the command and the time)",
		},
		{
			"quote", "q", "group no-run-if-empty:r will-cite no-notice gnu plain", &r.ignored,
			"change nothing, as -r, --group, --will-cite, --gnu and --plain of GNU parallel: tdf run works so anyway",
		},
	}
}

// refused lists the flags of GNU parallel that tdf run refuses, each with the flag that does the same, or the reason.
var refused = []struct{ names, instead string }{
	{
		"sshlogin:S sshloginfile slf ssh ssh-delay controlmaster:M filter-hosts filter-host hgrp hostgrp hostgroup " +
			"hostgroups onall nonall",
		"workers on other machines run the commands with --shared or --send",
	},
	{
		"transfer-file transfer-files tf transfer trc basefile bf cleanup rsync-opts",
		"--send PATH gives files to all commands, --send-each FILE gives each its own, and --fetch brings files back",
	},
	{"return", "--fetch brings files back"},
	{"header csv skip-first-line", "--from FILE reads a CSV file with a header"},
	{"m:m", "write --xargs, or -X"},
	{"max-lines:l L:L", "write --max-args N, or with --pipe --block SIZE"},
	{"exit:x show-limits max-line-length-allowed", "a command line has at most 120 KiB"},
	{
		"replace:i I:I extensionreplace U:U er basenamereplace bnr dirnamereplace dnr basenameextensionreplace bner " +
			"seqreplace slotreplace parens rpl plus",
		"write {}, {.}, {/}, {//}, {/.}, {#} or {%}; compute other values in the command, as in sh -c '…' - {}",
	},
	{"eof E:E trim filter", "change the inputs before tdf run reads them"},
	{"arg-sep arg-file-sep", "write :::, or --arg-file for files"},
	{"linkinputsource xapplyinputsource", "write :::+"},
	{
		"ungroup:u line-buffer line-buffered lb latest-line ll tmux tmux-pane fg bg",
		"output is printed when a command has ended; with a TDF, tdf output --follow shows what runs",
	},
	{"output-as-files files", "--results DIR, or --output FILE"},
	{
		"tag-string ctag ctag-string color colour color-failed colour-failed color-fail colour-fail cf",
		"--tag begins the lines with the input",
	},
	{"verbose:t v:v interactive:p shell-quote shell_quote", "--dry-run prints the commands"},
	{"silent", "it is the default; --quiet also prints no output"},
	{"no-keep-order nok", "leave out --keep-order"},
	{"retry-failed", "repeat the call with --joblog FILE --resume, which also runs the rest; with a TDF, tdf retry"},
	{
		"sql sql-master sql-worker sql-and-worker",
		"--shared keeps the tasks in Redis, and --results FILE.csv writes a table",
	},
	{"limit noswap memsuspend", "--load, --memfree or --resources limit what runs"},
	{"nice", "write nice -n N before the command"},
	{"term-seq", "a command gets SIGTERM, and two seconds later SIGKILL"},
	{"total-jobs total", "the number of inputs is counted"},
	{"process-slot-var", "the number of the slot is {%}, and the variable TDF_SLOT"},
	{"record-env session", "--env NAME or --env-all"},
	{"profile:J tollef shebang hashbang embed", "write the flags into a script"},
	{
		"tmpdir tempdir compress use-compress-program compress-program use-decompress-program decompress-program",
		"the variable TMPDIR names the directory of temporary files",
	},
	{"open-tty tty", "commands have no terminal; run one without tdf"},
	{"template tmpl", "make the file in the command, as in sh -c '…' - {}"},
	{
		"semaphore semaphore-timeout st semaphore-name id wait",
		"tdf limit KEY N limits the tasks with --limit-key KEY; tdf wait waits for tasks",
	},
	{
		"round-robin round recstart recend regexp regex remove-rec-sep rrs block-timeout bt cat fifo pipe-part tee " +
			"shard bin group-by",
		"--pipe gives each command a block of whole lines",
	},
	{
		"number-of-cpus number-of-sockets number-of-cores number-of-threads use-sockets-instead-of-threads " +
			"use-cores-instead-of-threads use-cpus-instead-of-cores",
		"--jobs counts cores as nproc does",
	},
	{"debug:D bug min-version shell-completion", "see tdf --help"},
}

// A refusal is the value of a flag that tdf run refuses.
type refusal string

func (refusal) String() string     { return "" }
func (refusal) Type() string       { return "bool" }
func (r refusal) Set(string) error { return r }
func (r refusal) Error() string    { return string(r) }

// addFlags adds the flags of the table, and those that are refused.
func (r *run) addFlags(to *pflag.FlagSet) {
	other := map[string]string{} // as GNU parallel does, --dry-run has the name --dryrun, too
	for _, f := range r.flags() {
		add(to, f)
		other[dashless(f.name)] = f.name
		for _, name := range names(f.also) {
			other[dashless(name[0])] = f.name
			if name[1] != "" {
				other[dashless(name[0])] = name[0]
				add(to, flag{name: name[0], short: name[1], to: f.to, help: "as --" + f.name})
				to.Lookup(name[0]).Hidden = true
			}
		}
	}
	for _, row := range refused {
		for _, name := range names(row.names) {
			to.AddFlag(&pflag.Flag{
				Name: name[0], Shorthand: name[1], Value: refusal(row.instead), Usage: row.instead,
				NoOptDefVal: "true", Hidden: true,
			})
			other[dashless(name[0])] = name[0]
		}
	}
	to.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(cmp.Or(other[dashless(name)], name))
	})
}

// names returns names of flags, each with its letter or "".
func names(text string) (all [][2]string) {
	for _, name := range strings.Fields(text) {
		long, short, _ := strings.Cut(name, ":")
		all = append(all, [2]string{long, short})
	}
	return all
}

func dashless(name string) string { return strings.ReplaceAll(name, "-", "") }

func add(to *pflag.FlagSet, f flag) {
	switch v := f.to.(type) {
	case *bool:
		to.BoolVarP(v, f.name, f.short, false, f.help)
	case *string:
		to.StringVarP(v, f.name, f.short, "", f.help)
	case *[]string:
		to.StringArrayVarP(v, f.name, f.short, nil, f.help)
	case *int:
		to.IntVarP(v, f.name, f.short, 0, f.help)
	case pflag.Value:
		to.VarP(v, f.name, f.short, f.help)
	}
}
