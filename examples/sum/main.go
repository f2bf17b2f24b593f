// Command sum divides the numbers m..n into buckets of p numbers, and sums each bucket. It then divides and sums
// the results in the same way, until one number is left. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/program"
	"github.com/tdf-framework/tdf/trial"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run runs the command. It returns the exit status: 0 after success, 1 if the sum failed, and 2 for invalid arguments.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, err := parse(args, stderr)
	if errors.Is(err, errHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "sum: %v\n", err)
		return 2
	}
	total, err := c.compute(ctx, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "sum: %v\n", err)
		if errors.As(err, new(*tdf.ConfigError)) {
			return 2
		}
		return 1
	}
	fmt.Fprintf(stdout, "sum of %d..%d = %d\n", c.plan.from, c.plan.to, total)
	return 0
}

// compute computes the sum. With a configuration, it uses the Redis of the configuration. Without one, it runs all
// components in its own process.
func (c *command) compute(ctx context.Context, stderr io.Writer) (int64, error) {
	if c.config == "" {
		return c.computeHere(ctx, stderr)
	}
	source, err := scriptSource(c.program)
	if err != nil {
		return 0, err
	}
	o, err := manager.LoadOptions(c.config)
	if err != nil {
		return 0, err
	}
	o.Progress = stderr
	m, err := manager.New(o)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	fmt.Fprintf(stderr, "run %s; after an interruption, continue it with -run %s\n", c.run, c.run)
	return newSum(m, c.plan, source, c.group()).compute(ctx)
}

func (c *command) computeHere(ctx context.Context, stderr io.Writer) (int64, error) {
	all, err := trial.Start(ctx, 2, stderr)
	if err != nil {
		return 0, err
	}
	defer all.Stop()
	o := all.Manager()
	o.Progress = stderr
	m, err := manager.New(o)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	packed, err := archive()
	if err != nil {
		return 0, err
	}
	source, err := program.Put(ctx, m, packed)
	if err != nil {
		return 0, err
	}
	return newSum(m, c.plan, source, c.group()).compute(ctx)
}
