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

// A way is a tool that runs the program.
type way struct {
	name string
	run  func(ctx context.Context, dir string, runs int) (cost, error)
}

// A cost says how long all runs took, and how much CPU time the tool and its programs used. The CPU time does not
// include Redis. It depends less than the run time on other work of the machine.
type cost struct{ took, cpu time.Duration }

func main() {
	runs := flag.Int("runs", 2000, "number of runs of each measurement")
	repeats := flag.Int("repeats", 5, "number of measurements of each tool; the result is the median")
	only := flag.String("only", "", "text in the names of the tools to measure; empty means all tools")
	flag.Parse()
	if err := measure(context.Background(), *runs, *repeats, *only, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench-run:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, runs, repeats int, only string, out io.Writer) error {
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
	ways := selected([]way{
		{"go os/exec", bare},
		{"xargs -P2", xargs},
		{"GNU parallel -j2", parallel},
		{"go os/exec, with files of a round", careful},
		{"tdf-worker, 2 slots", tdfWorker},
	}, only)
	if len(ways) == 0 {
		return fmt.Errorf("no tool has %q in its name", only)
	}
	took, cpu := make([][]time.Duration, len(ways)), make([][]time.Duration, len(ways))
	for range repeats {
		for i, w := range ways {
			c, err := w.run(ctx, dir, runs)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			took[i], cpu[i] = append(took[i], c.took), append(cpu[i], c.cpu)
		}
	}
	print(out, ways, took, cpu, runs)
	return nil
}

// selected returns the ways whose names contain text.
func selected(ways []way, text string) []way {
	return slices.DeleteFunc(ways, func(w way) bool { return !strings.Contains(w.name, text) })
}

func print(out io.Writer, ways []way, took, cpu [][]time.Duration, runs int) {
	fmt.Fprintf(out, "%d runs of an empty run.sh, %d at once; median of %d\n\n", runs, slots, len(took[0]))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\truns/s\tms per run\tspeed / %s\tCPU ms per run\t\n", ways[0].name)
	for i, of := range ways {
		per := median(took[i]).Seconds() / float64(runs)
		fmt.Fprintf(w, "%s\t%.0f\t%.2f\t%.2f\t%.2f\t\n", of.name, 1/per, per*1e3, median(took[0]).Seconds()/median(took[i]).Seconds(),
			median(cpu[i]).Seconds()/float64(runs)*1e3)
	}
	w.Flush()
}

func median(d []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(d))
	return sorted[len(sorted)/2]
}

// inputs returns the stdin of xargs and parallel, with one line for each run.
func inputs(runs int) io.Reader { return strings.NewReader(strings.Repeat("1\n", runs)) }

func command(ctx context.Context, dir string, runs int, name string, args ...string) (cost, error) {
	if _, err := exec.LookPath(name); err != nil {
		return cost{}, fmt.Errorf("%w; run scripts/setup %s", err, name)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdin, cmd.Stderr = filepath.Join(dir, "p"), inputs(runs), os.Stderr
	began := time.Now()
	err := cmd.Run()
	return cost{time.Since(began), cpuOf(cmd)}, err
}

// cpuOf returns the CPU time of a command that has ended, with its children.
func cpuOf(cmd *exec.Cmd) time.Duration {
	if cmd.ProcessState == nil {
		return 0
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

func xargs(ctx context.Context, dir string, runs int) (cost, error) {
	return command(ctx, dir, runs, "xargs", "-P", fmt.Sprint(slots), "-n", "1", "./run.sh")
}

func parallel(ctx context.Context, dir string, runs int) (cost, error) {
	return command(ctx, dir, runs, "parallel", "--will-cite", "-j", fmt.Sprint(slots), "./run.sh")
}
