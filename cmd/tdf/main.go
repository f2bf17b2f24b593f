// Command tdf opens, watches, explains and steers tasks from a terminal:
//
//	tdf COMMAND [ARGUMENT…] [FLAG…]
//
// docs/tdf.md describes the commands, and docs/configuration.md the configuration. The folders below internal/ have the
// commands of each section of tdf --help.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // so that tdf knows the zones that the servers know

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/command"
)

func main() {
	command.Hide()
	ctx, force := command.Signals()
	p := cli.Process{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.Environ(), Force: force}
	os.Exit(execute(ctx, p, os.Args[1:]...))
}

// execute executes one call of tdf and returns its exit status. The first signal ends ctx.
func execute(ctx context.Context, p cli.Process, args ...string) int {
	a := cli.New(p)
	root := newRoot(a)
	root.SetArgs(args)
	return a.Execute(ctx, root)
}
