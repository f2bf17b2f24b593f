// Command sources has a program fetched in every way there is, then in some ways that cannot
// work, and then runs it again without fetching it. See README.md.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/examples/local"
	"github.com/tdf-framework/tdf/manager"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run returns the exit status: 0 if all went as expected, 1 if not, 2 if it was called wrongly.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("sources", flag.ContinueOnError)
	flags.SetOutput(stderr)
	file := flags.String("config", "", "the manager's `FILE.cfg`: uses its Redis, and the server and workers there (default: all in this process)")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "sources: %q is no option\n", flags.Arg(0))
		flags.Usage()
		return 2
	}
	wrong, err := tryAll(ctx, *file, stdout, stderr)
	switch {
	case errors.As(err, new(*config.Error)):
		fmt.Fprintf(stderr, "sources: %v\n", err)
		return 2
	case err != nil:
		fmt.Fprintf(stderr, "sources: %v\n", err)
		return 1
	case wrong > 0:
		fmt.Fprintf(stdout, "\n%d tasks did not go as expected\n", wrong)
		return 1
	}
	fmt.Fprintln(stdout, "\nall went as expected")
	return 0
}

// connect uses the Redis that the configuration names, or without one starts all that is needed.
func connect(ctx context.Context, file string, stderr io.Writer) (m *manager.Manager, stop func(), err error) {
	if file != "" {
		o, err := manager.LoadOptions(file)
		if err != nil {
			return nil, nil, err
		}
		o.Progress = stderr
		m, err := manager.New(o)
		if err != nil {
			return nil, nil, err
		}
		return m, func() { m.Close() }, nil
	}
	here, err := local.Start(ctx, 2, stderr)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := here.Manager()
	if err == nil {
		o := manager.OptionsOf(cfg)
		o.Progress = stderr
		m, err = manager.New(o)
	}
	if err != nil {
		return nil, nil, errors.Join(err, here.Stop())
	}
	return m, func() { m.Close(); here.Stop() }, nil
}

// tryAll makes the three phases, and returns how many tasks did not go as expected.
func tryAll(ctx context.Context, file string, stdout, stderr io.Writer) (wrong int, err error) {
	m, stop, err := connect(ctx, file, stderr)
	if err != nil {
		return 0, err
	}
	defer stop()
	shop, err := openShop(ctx)
	if err != nil {
		return 0, err
	}
	defer shop.close()
	run := "sources-" + strings.ToLower(rand.Text()[:8]) // names programs that no worker has yet
	good, err := shop.good(ctx, m, run)
	if err != nil {
		return 0, err
	}
	first, err := phase(ctx, m, run+"-1", good)
	if err != nil {
		return 0, err
	}
	second, err := phase(ctx, m, run+"-2", shop.bad(run))
	if err != nil {
		return 0, err
	}
	before := shop.requests.Load()
	third, err := phase(ctx, m, run+"-3", good)
	if err != nil {
		return 0, err
	}
	compare(third, first)
	wrong += printRows(stdout, "1. Every kind of source and archive", first)
	wrong += printRows(stdout, "2. What cannot work", second)
	wrong += printRows(stdout, "3. All of the first again, without fetching", third)
	return wrong + printRequests(stdout, shop.requests.Load()-before), nil
}

// printRequests tells how often the http server was asked for programs that were there.
func printRequests(w io.Writer, n int64) (wrong int) {
	fmt.Fprintf(w, "\nrequests to the http server in phase 3: %d\n", n)
	if n > 0 {
		fmt.Fprintln(w, "NOT AS EXPECTED: do the workers share one working directory?")
		return 1
	}
	return 0
}
