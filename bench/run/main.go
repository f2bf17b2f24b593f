// Command run measures how many runs of a trivial run.sh a worker with two slots makes per second. It compares the
// worker with other tools that run two programs at a time (docs/performance.md).
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// slots is the number of programs that each tool runs at once.
const slots = 2

// A way is a tool that runs the program. Its function run returns the time that all runs took.
type way struct {
	name string
	run  func(ctx context.Context, dir string, runs int) (time.Duration, error)
}

func main() {
	runs := flag.Int("runs", 2000, "number of runs of each measurement")
	repeats := flag.Int("repeats", 5, "number of measurements of each tool; the result is the median")
	flag.Parse()
	if err := measure(context.Background(), *runs, *repeats, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench-run:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, runs, repeats int, out io.Writer) error {
	dir, err := os.MkdirTemp("", "tdf-bench-run")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.MkdirAll(filepath.Join(dir, "p"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "p", "run.sh"), []byte("#!/bin/sh\n:\n"), 0o755); err != nil {
		return err
	}
	ways := []way{{"go os/exec", bare}, {"xargs -P2", xargs}, {"GNU parallel -j2", parallel}, {"go os/exec, with files of a round", careful}, {"tdf-worker, 2 slots", tdfWorker}}
	took := make([][]time.Duration, len(ways))
	for range repeats {
		for i, w := range ways {
			d, err := w.run(ctx, dir, runs)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			took[i] = append(took[i], d)
		}
	}
	print(out, ways, took, runs)
	return nil
}

func print(out io.Writer, ways []way, took [][]time.Duration, runs int) {
	fmt.Fprintf(out, "%d runs of an empty run.sh, %d at once; median of %d\n\n", runs, slots, len(took[0]))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\truns/s\tms per run\tspeed / os/exec\t")
	for i, of := range ways {
		per := median(took[i]).Seconds() / float64(runs)
		fmt.Fprintf(w, "%s\t%.0f\t%.2f\t%.2f\t\n", of.name, 1/per, per*1e3, median(took[0]).Seconds()/median(took[i]).Seconds())
	}
	w.Flush()
}

func median(d []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(d))
	return sorted[len(sorted)/2]
}

// inputs returns the stdin of xargs and parallel, with one line for each run.
func inputs(runs int) io.Reader { return strings.NewReader(strings.Repeat("1\n", runs)) }

func command(ctx context.Context, dir string, runs int, name string, args ...string) (time.Duration, error) {
	if _, err := exec.LookPath(name); err != nil {
		return 0, fmt.Errorf("%w; run scripts/setup %s", err, name)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdin, cmd.Stderr = filepath.Join(dir, "p"), inputs(runs), os.Stderr
	began := time.Now()
	err := cmd.Run()
	return time.Since(began), err
}

func xargs(ctx context.Context, dir string, runs int) (time.Duration, error) {
	return command(ctx, dir, runs, "xargs", "-P", fmt.Sprint(slots), "-n", "1", "./run.sh")
}

func parallel(ctx context.Context, dir string, runs int) (time.Duration, error) {
	return command(ctx, dir, runs, "parallel", "--will-cite", "-j", fmt.Sprint(slots), "./run.sh")
}
