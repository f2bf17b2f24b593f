// Command peers compares TDF with asynq, BullMQ, GNU parallel and xargs, and checks the project's targets for speed
// (docs/development.md, "Measuring"). It starts its own redis-server for each measurement.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

func main() {
	if isRole() {
		exit(runRole(context.Background(), os.Stdin, os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exit(compare(ctx, os.Args[1:], os.Stdout))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-peers:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A size says how much each measurement does.
type size struct {
	tasks   int // tasks of most measurements
	runs    int // runs of a program
	pickups int // tasks that an idle worker picks up
	links   int // tasks of the chain
}

func compare(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench-peers", flag.ContinueOnError)
	names := flags.String("bars", "", "comma-separated names of the bars to measure; empty means all bars")
	rounds := flags.Int("rounds", 3, "number of measurements of each side; the result is the median")
	tasks := flags.Int("tasks", 20_000, "number of tasks of most measurements")
	runs := flags.Int("runs", 2000, "number of runs of a program or command")
	quick := flags.Bool("quick", false, "use tiny sizes and one round; only to test this command")
	err := flags.Parse(args)
	if err != nil {
		return err
	}
	s := size{tasks: *tasks, runs: *runs, pickups: 300, links: 100}
	if *quick {
		s, *rounds = size{tasks: 100, runs: 6, pickups: 5, links: 3}, 1
	}
	selected := slices.DeleteFunc(allBars(), func(b *bar) bool {
		return *names != "" && !slices.Contains(strings.Split(*names, ","), b.name)
	})
	fmt.Fprintf(out, "medians of %d; %d tasks of 100 bytes, or %d runs of a program\n\n", *rounds, s.tasks, s.runs)
	var errs []error
	var lines strings.Builder
	for _, b := range selected {
		err := b.measure(ctx, *rounds, s)
		if err != nil {
			errs = append(errs, fmt.Errorf("bar %s: %w", b.name, err))
			continue
		}
		b.print(out)
		for _, w := range b.wants {
			fmt.Fprintln(&lines, b.line(w))
		}
	}
	fmt.Fprintln(out, "\n"+lines.String())
	return errors.Join(errs...)
}
