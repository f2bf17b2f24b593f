// Command tdf opens, watches, explains and steers tasks from a terminal:
//
//	tdf COMMAND [ARGUMENT…] [FLAG…]
//
// docs/tdf.md describes the commands, and docs/configuration.md the configuration. The folders below internal/ have the commands of each
// section of tdf --help.
package main

import (
	"context"
	"io"
	"os"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/command"
)

func main() {
	command.Hide()
	ctx, force := command.Signals()
	os.Exit(run(ctx, force, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes one call of tdf and returns its exit status. The first signal ends ctx. The second signal ends force.
func run(ctx, force context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := cli.New(stdin, stdout, stderr)
	a.Force = force
	root := newRoot(a)
	root.SetArgs(args)
	return a.Execute(ctx, root)
}
