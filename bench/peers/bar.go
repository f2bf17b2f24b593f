package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/tdf-framework/tdf/bench/internal/bars"
)

// A bar is a target, and the measurements that show whether it is met.
type bar struct {
	name  string
	unit  string // of the sides' figures
	sides []side
	any   bool
	wants []want

	figures []map[string]figure // of each round, by side
}

// A side is one of the compared measurements of a bar.
type side struct {
	name     string
	settings []string // further arguments of redis-server
	measure  func(t *trial) (figure, error)
}

// A figure is the result of one measurement. CPU and Commands are the usage of Redis per task, or 0.
type figure struct {
	Value    float64
	CPU      float64 // µs
	Commands float64 // including those in scripts
}

// A want is a condition for a figure that is computed from the figures of one round.
type want struct {
	unit   string
	atMost bool
	limit  float64
	of     sample
}

// A sample computes a figure of one round from the figures of the sides. It returns false if a side was not measured.
type sample func(figures map[string]figure) (float64, bool)

// errMissing means that a side cannot be measured on this machine.
var errMissing = errors.New("not measured")

// measureAll measures the bars, and prints a table and the bars' lines. The sides of a bar take turns.
func measureAll(ctx context.Context, all []*bar, rounds int, s size, out io.Writer) error {
	for _, b := range all {
		for round := range rounds {
			if err := b.measure(ctx, round, s); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(out, "medians of %d; %d tasks of 100 bytes; redis-server without persistence on loopback\n\n", rounds, s.tasks)
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
		return fmt.Errorf("%d of %d bars were not measured", missing, len(all))
	}
	return nil
}

// measure measures each side once. Every other round begins with the last side.
func (b *bar) measure(ctx context.Context, round int, s size) error {
	figures := map[string]figure{}
	b.figures = append(b.figures, figures)
	order := slices.Clone(b.sides)
	if round%2 == 1 {
		slices.Reverse(order)
	}
	for _, side := range order {
		f, err := measureSide(ctx, side, s)
		if errors.Is(err, errMissing) {
			fmt.Fprintf(os.Stderr, "%s, %s: %v\n", b.name, side.name, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("bar %s, %s: %w", b.name, side.name, err)
		}
		fmt.Fprintf(os.Stderr, "%s, round %d, %s: %s %s\n", b.name, round+1, side.name, bars.Format(f.Value), b.unit)
		figures[side.name] = f
	}
	return nil
}

// result returns the bar's parts. Each sample compares figures of the same round.
func (b *bar) result() bars.Bar {
	line := bars.Bar{Name: b.name, Any: b.any}
	for _, w := range b.wants {
		part := bars.Part{Unit: w.unit, AtMost: w.atMost, Limit: w.limit}
		for _, figures := range b.figures {
			if x, ok := w.of(figures); ok {
				part.Samples = append(part.Samples, x)
			}
		}
		line.Parts = append(line.Parts, part)
	}
	return line
}

func printTable(out io.Writer, all []*bar) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "name\tside\tmedian\tmin-max\t\tRedis CPU, µs per task\tcommands per task")
	for _, b := range all {
		for _, side := range b.sides {
			var values, cpu, commands []float64
			for _, figures := range b.figures {
				if f, ok := figures[side.name]; ok {
					values, cpu, commands = append(values, f.Value), append(cpu, f.CPU), append(commands, f.Commands)
				}
			}
			if len(values) == 0 {
				fmt.Fprintf(w, "%s\t%s\t-\t\t\t\t\n", b.name, side.name)
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s-%s\t%s\t%s\t%s\n", b.name, side.name, bars.Format(bars.Median(values)),
				bars.Format(slices.Min(values)), bars.Format(slices.Max(values)), b.unit, unlessZero(bars.Median(cpu)), unlessZero(bars.Median(commands)))
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

// ratio returns the figure of side a, divided by that of side b.
func ratio(a, b string) sample {
	return func(figures map[string]figure) (float64, bool) {
		x, measured := figures[a]
		y, alsoMeasured := figures[b]
		return x.Value / y.Value, measured && alsoMeasured
	}
}

// value returns the figure of a side.
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
