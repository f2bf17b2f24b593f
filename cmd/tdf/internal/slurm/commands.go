package slurm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/command"
	"github.com/tdf-framework/tdf/sweep"
)

var commands = map[string]func(context.Context, *cli.App, []string) error{
	"sbatch": sbatch, "squeue": squeue, "scancel": scancel, "sacct": sacct, "scontrol": scontrol, "srun": srun,
}

func names() []string { return slices.Sorted(maps.Keys(commands)) }

// Commands returns the command tdf slurm-commands.
func Commands(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "slurm-commands DIR",
		Short: "Write sbatch, squeue, scancel, sacct, scontrol and srun for TDF",
		Long: `Writes the commands of Slurm as small programs into DIR. They open, list and cancel tasks of this TDF, so scripts
for Slurm run without Slurm. The programs have the path of this tdf, and the flags --config, --namespace, --redis and
--set of this call, or the configuration file that it has found.`,
		Example: "  tdf slurm-commands ~/tdf-slurm\n  tdf --config tdf.cfg --namespace lab slurm-commands ~/lab-slurm",
		Args:    cli.ExactlyOne("DIR"),
		RunE:    func(_ *cobra.Command, args []string) error { return writeCommands(a, args[0]) },
	}
}

// Slurm returns the command tdf slurm, which the small programs call.
func Slurm(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "slurm COMMAND [ARG…]", Short: "Run a command of Slurm on TDF",
		Long: `Runs sbatch, squeue, scancel, sacct, scontrol or srun on this TDF, with their own arguments (docs/from-slurm.md).
The programs that tdf slurm-commands writes call it.`,
		Example: "  tdf slurm sbatch --array=1-10 job.sh\n  tdf slurm squeue -t all", Args: cli.SomeArguments("COMMAND"),
		RunE: func(c *cobra.Command, args []string) error {
			run := commands[args[0]]
			if run == nil {
				return cli.Usagef("unknown command %q of Slurm: want one of %s", args[0], strings.Join(names(), ", "))
			}
			return end(c.Context(), a, args[0], run(c.Context(), a, args[1:]))
		},
	}
	c.Flags().SetInterspersed(false)
	return c
}

// end prints an error as the commands of Slurm do, and returns the error with the exit status.
func end(ctx context.Context, a *cli.App, name string, err error) error {
	switch {
	case errors.Is(err, errVersion), errors.Is(err, pflag.ErrHelp):
		fmt.Fprintf(a.Stdout, "TDF %s, with the commands of Slurm 22.05; docs/from-slurm.md lists the options of %s\n",
			command.Version(), name)
		return nil
	case err == nil, errors.As(err, new(cli.ExitStatus)), ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return err
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		a.Say("%s: error: %s", name, line)
	}
	if cli.MayHaveChanged(err) {
		a.Say("%s: to see what was done: squeue", name)
	}
	return cli.ExitStatus(1)
}

var errVersion = errors.New("the version was asked for")

// newFlags returns the options that all commands have. The options of a command follow; parse then reads all of them.
func newFlags() *pflag.FlagSet {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Usage = func() {}
	f.SetInterspersed(false)
	f.BoolFuncP("version", "V", "", func(string) error { return errVersion })
	f.BoolP("verbose", "v", false, "")
	return f
}

// parse reads arguments as getopt_long does: the beginning of a long name is enough.
func parse(f *pflag.FlagSet, args []string) ([]string, error) {
	f.SetNormalizeFunc(func(f *pflag.FlagSet, name string) pflag.NormalizedName {
		var similar []string
		f.VisitAll(func(flag *pflag.Flag) {
			if flag.Name == name {
				similar = []string{name, name} // the name itself, even if others begin with it
			}
			if strings.HasPrefix(flag.Name, name) {
				similar = append(similar, flag.Name)
			}
		})
		if len(similar) == 1 {
			name = similar[0]
		}
		return pflag.NormalizedName(name)
	})
	err := f.Parse(args)
	return f.Args(), err
}

// without adds options that a command accepts without effect. The short name follows the long one after a slash.
func without(f *pflag.FlagSet, names, noValue string) {
	for name := range strings.FieldsSeq(names + " " + noValue) {
		long, short, _ := strings.Cut(name, "/")
		f.StringP(long, short, "", "")
		if slices.Contains(strings.Fields(noValue), name) {
			f.Lookup(long).NoOptDefVal = "yes"
		}
	}
}

const mark = "# Written by tdf slurm-commands."

// writeCommands writes the small programs.
func writeCommands(a *cli.App, dir string) error {
	tdf, err := os.Executable()
	if err != nil {
		return err
	}
	file, err := a.ConfigFile()
	if err == nil && file != "" {
		file, err = filepath.Abs(file)
	}
	if err != nil {
		return err
	}
	call := sweep.Quote(tdf)
	for _, flag := range [][2]string{{"config", file}, {"namespace", a.Namespace}, {"redis", a.Redis}} {
		if flag[1] != "" {
			call += " --" + flag[0] + "=" + sweep.Quote(flag[1])
		}
	}
	mode := os.FileMode(0o755)
	for _, value := range a.Set {
		call += " --set=" + sweep.Quote(value)
		mode = 0o700 // a value may be a password
	}
	dir = a.Path(dir)
	err = os.MkdirAll(dir, 0o755)
	for _, name := range names() {
		path := filepath.Join(dir, name)
		old, _ := os.ReadFile(path)
		if len(old) > 0 && !strings.Contains(string(old), mark) {
			return cli.Usagef("%s exists, and is not from tdf slurm-commands: name another directory", path)
		}
		text := "#!/bin/sh\n" + mark + "\nexec " + call + " slurm " + name + " \"$@\"\n"
		if err == nil && string(old) != text {
			os.Remove(path) // so that it gets this mode
			err = os.WriteFile(path, []byte(text), mode)
		}
	}
	if err == nil {
		a.Say("wrote %s; put the directory first in PATH: PATH=%s:$PATH", strings.Join(names(), ", "), dir)
	}
	return err
}
