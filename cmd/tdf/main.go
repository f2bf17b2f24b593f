// Command tdf opens, watches, explains and steers tasks from a terminal:
//
//	tdf COMMAND [ARGUMENT…]
//
// docs/tdf.md tells what each command does; docs/configuration.md what it can be told.
package main

import (
	"context"
	"io"
	"os"

	"github.com/tdf-framework/tdf/internal/command"
)

func main() {
	command.Hide()
	told, again := command.Signals()
	os.Exit(run(told, again, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole command; told ends when it has to stop, again when it has to stop at once.
func run(told, again context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := newApp(stdin, stdout, stderr)
	a.again = again
	root := a.root()
	root.SetArgs(args)
	return a.execute(told, root)
}
