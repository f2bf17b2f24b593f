package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/tdf-framework/tdf/bench/internal/bars"
)

// A bar is a target, and the measurements that show whether it is met.
type bar struct {
	name  string
	unit  string // the unit of the sides' figures
	sides []side
	wants []want

	figures []map[string]figure // one map for each round, with the name of the side as key
	failed  map[string]bool     // the sides that failed; their figures do not count
}

// A side is one of the compared measurements of a bar.
type side struct {
	name     string
	settings []string // additional arguments of redis-server
	measure  func(t *trial) (figure, error)
}

// A figure is the result of one measurement. CPU, Commands and Scripts are the usage of Redis per task. ToolCPU is the
// CPU time per task of the measured tool and of the programs that it ran. These four fields are 0 if the side does not
// measure them.
type figure struct {
	Value    float64
	CPU      float64 // µs
	Commands float64 // including the commands that scripts call
	Scripts  float64 // µs of EVALSHA, including the commands that scripts call
	ToolCPU  float64 // µs
}

// A want is a condition. It limits a figure that is computed from the figures of one round.
type want struct {
	unit   string
	atMost bool
	limit  float64
	of     sample
}

// A sample computes a figure of one round from the figures of the sides. It returns false if a side was not measured.
type sample func(figures map[string]figure) (float64, bool)

// measureAll measures the bars, and prints a table and the bars' lines. The sides of a bar take turns. If a side fails,
// measureAll goes on with the other sides, and returns the error at the end.
func measureAll(ctx context.Context, all []*bar, rounds int, s size, out io.Writer) error {
	var errs []error
	for _, b := range all { // if ctx ends, the side that was being measured fails
		for round := range rounds {
			if ctx.Err() == nil {
				errs = append(errs, b.measure(ctx, round, s))
			}
		}
	}
	fmt.Fprintf(out, "medians of %d; %d tasks of 100 bytes, or %d runs of a program; redis-server without "+
		"persistence on loopback\n\n",
		rounds, s.tasks, s.runs)
	if err := printTable(out, all); err != nil {
		return err
	}
	fmt.Fprintln(out)
	missing := 0
	for _, b := range all {
		line := b.result()
		fmt.Fprintln(out, line.Line())
		if line.Verdict() == bars.NotMeasured {
			missing++
		}
	}
	if missing > 0 {
		errs = append(errs, fmt.Errorf("%d of %d bars were not measured", missing, len(all)))
	}
	return errors.Join(errs...)
}

// measure measures each side once, unless it failed in an earlier round. In the second, fourth, sixth round and so on,
// it measures the sides in reverse order.
func (b *bar) measure(ctx context.Context, round int, s size) error {
	figures := map[string]figure{}
	b.figures = append(b.figures, figures)
	order := slices.Clone(b.sides)
	if round%2 == 1 {
		slices.Reverse(order)
	}
	var errs []error
	for _, side := range order {
		if b.failed[side.name] || ctx.Err() != nil {
			continue
		}
		f, err := measureSide(ctx, side, s)
		if err != nil {
			err = fmt.Errorf("bar %s, %s: %w", b.name, side.name, err)
			fmt.Fprintln(os.Stderr, err)
			errs = append(errs, err)
			b.fail(side.name)
			continue
		}
		fmt.Fprintf(os.Stderr, "%s, round %d, %s: %s %s\n", b.name, round+1, side.name, bars.Format(f.Value), b.unit)
		figures[side.name] = f
	}
	return errors.Join(errs...)
}

func (b *bar) fail(side string) {
	if b.failed == nil {
		b.failed = map[string]bool{}
	}
	b.failed[side] = true
}

// result returns the bar's parts. Each sample compares figures of the same round. If a side has failed, the parts that
// use its figures have no samples.
func (b *bar) result() bars.Bar {
	line := bars.Bar{Name: b.name}
	for _, w := range b.wants {
		part := bars.Part{Unit: w.unit, AtMost: w.atMost, Limit: w.limit}
		for _, figures := range b.figures {
			if x, ok := w.of(b.unlessFailed(figures)); ok {
				part.Samples = append(part.Samples, x)
			}
		}
		line.Parts = append(line.Parts, part)
	}
	return line
}

func (b *bar) unlessFailed(figures map[string]figure) map[string]figure {
	figures = maps.Clone(figures)
	maps.DeleteFunc(figures, func(side string, _ figure) bool { return b.failed[side] })
	return figures
}

func printTable(out io.Writer, all []*bar) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "name\tside\tmedian\tmin-max\t\tRedis CPU, µs per task\tcommands per task\tCPU of the tool, "+
		"µs per task")
	for _, b := range all {
		for _, side := range b.sides {
			var values, cpu, commands, tool []float64
			for _, figures := range b.figures {
				if f, ok := figures[side.name]; ok {
					values, cpu, commands, tool = append(values, f.Value), append(cpu, f.CPU),
						append(commands, f.Commands), append(tool, f.ToolCPU)
				}
			}
			if len(values) == 0 {
				fmt.Fprintf(w, "%s\t%s\t-\t\t\t\t\t\n", b.name, side.name)
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s-%s\t%s\t%s\t%s\t%s\n", b.name, side.name, bars.Format(bars.Median(values)),
				bars.Format(slices.Min(values)), bars.Format(slices.Max(values)), b.unit, unlessZero(bars.Median(cpu)),
				unlessZero(bars.Median(commands)), unlessZero(bars.Median(tool)))
		}
	}
	return w.Flush()
}

func unlessZero(x float64) string {
	if x == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", x)
}

// ratio returns a sample that divides the figure of side a by the figure of side b.
func ratio(a, b string) sample {
	return func(figures map[string]figure) (float64, bool) {
		x, measured := figures[a]
		y, alsoMeasured := figures[b]
		return x.Value / y.Value, measured && alsoMeasured
	}
}

// value returns a sample whose result is the figure of one side.
func value(a string) sample {
	return func(figures map[string]figure) (float64, bool) {
		x, measured := figures[a]
		return x.Value, measured
	}
}

// atLeast and atMost return conditions.
func atLeast(limit float64, unit string, of sample) want {
	return want{unit: unit, limit: limit, of: of}
}

func atMost(limit float64, unit string, of sample) want {
	return want{unit: unit, atMost: true, limit: limit, of: of}
}
