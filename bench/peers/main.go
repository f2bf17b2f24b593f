// Command peers compares TDF with asynq, BullMQ and GNU parallel, and checks the project's targets for speed
// (docs/development.md, "Measuring"). It starts its own redis-server for each measurement.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
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
	tasks   int           // tasks of most measurements
	runs    int           // runs of a program
	files   int           // files of the program besides run.sh
	copied  int           // the same in the measurement of copies
	pickups int           // tasks that an idle worker picks up
	links   int           // tasks of the chain
	backlog int           // open tasks of the large backlog; the small backlog has a tenth of them
	rounds  int           // rounds of an idle server
	workers int           // idle workers
	warmup  time.Duration // time until workers and Redis count as idle
	idle    time.Duration // how long commands of idle workers are counted
}

var (
	fullSize = size{
		tasks: 20_000, runs: 2000, copied: 10_000, pickups: 300, links: 100, backlog: 1_000_000, rounds: 200, workers: 100,
		warmup: 12 * time.Second, idle: 30 * time.Second,
	}
	quickSize = size{
		tasks: 100, runs: 6, copied: 20, pickups: 5, links: 3, backlog: 500, rounds: 3, workers: 2,
		warmup: time.Second / 2, idle: time.Second / 2,
	}
)

func compare(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench-peers", flag.ContinueOnError)
	names := flags.String("bars", "", "comma-separated names of the bars to measure; empty means all bars")
	rounds := flags.Int("rounds", 3, "number of measurements of each side; the result is the median")
	tasks := flags.Int("tasks", 0, fmt.Sprintf("number of tasks of most measurements (default %d)", fullSize.tasks))
	runs := flags.Int("runs", 0, fmt.Sprintf("number of runs of a program (default %d)", fullSize.runs))
	files := flags.Int("files", 0, "number of files of the program besides run.sh")
	quick := flags.Bool("quick", false, "use tiny sizes and one round; only to test this command")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s := fullSize
	if *quick {
		s, *rounds = quickSize, 1
	}
	if *tasks > 0 {
		s.tasks = *tasks
	}
	if *runs > 0 {
		s.runs = *runs
	}
	if *files > 0 {
		s.files, s.copied = *files, *files
	}
	selected, err := selectBars(*names)
	if err != nil {
		return err
	}
	return measureAll(ctx, selected, *rounds, s, out)
}

func selectBars(names string) ([]*bar, error) {
	all := allBars()
	if names == "" {
		return all, nil
	}
	var selected []*bar
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(b *bar) bool { return b.name == name })
		if i < 0 {
			known := make([]string, len(all))
			for j, b := range all {
				known[j] = b.name
			}
			return nil, fmt.Errorf("unknown bar %q: want some of %s", name, strings.Join(known, ","))
		}
		selected = append(selected, all[i])
	}
	return selected, nil
}
