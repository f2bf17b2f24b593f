// Command tdf opens, watches, explains and steers tasks from a terminal:
//
//	tdf COMMAND [ARGUMENT…] [FLAG…]
//
// docs/tdf.md describes the commands. docs/configuration.md describes the configuration.
package main

import (
	"context"
	"io"
	"os"

	"github.com/tdf-framework/tdf/internal/command"
)

func main() {
	command.Hide()
	ctx, force := command.Signals()
	os.Exit(run(ctx, force, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes one call of tdf and returns its exit status. The first signal ends ctx. The second signal ends force.
func run(ctx, force context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := newApp(stdin, stdout, stderr)
	a.force = force
	root := a.root()
	root.SetArgs(args)
	return a.execute(ctx, root)
}
