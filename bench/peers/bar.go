package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
)

// A bar is a target, and the measurements that show whether it is met. The first side is TDF.
type bar struct {
	name    string
	unit    string // the unit of the sides' figures
	sides   []side
	wants   []want
	figures map[string][]figure // by the name of the side, one for each round
}

// A side is one of the compared measurements of a bar.
type side struct {
	name     string
	settings []string // additional arguments of redis-server
	measure  func(t *trial) figure
}

// A figure is the result of one measurement. The other fields are 0 if the side does not measure them.
type figure struct {
	value    float64
	cpu      float64 // µs of Redis per task
	commands float64 // commands of Redis per task, including those that scripts call
	tool     float64 // µs of CPU time of the measured tool and its programs per task
}

// A want is a limit for TDF's figure, or for its ratio to the figure of another side in the same round.
type want struct {
	sign  string // >= or <=
	limit float64
	side  string // the other side, or empty
}

// allBars returns all bars, in the order of the table.
func allBars() []*bar {
	one, shared := job{Batch: 1}, job{Callers: 16}
	return []*bar{
		newBar("process", "tasks/s", sidesOf(process, tdfTasks, asynqTasks, bullmqTasks),
			want{">=", 1.3, "BullMQ"}, want{">=", 2.5, "asynq"}),
		newBar("open-bulk", "tasks/s", sidesOf(opening, tdfTasks, asynqTasks, bullmqTasks), want{">=", 2, "asynq"}),
		newBar("open-single", "tasks/s",
			sidesOf(opening, tdfTasks.with(one), asynqTasks.with(one), bullmqTasks.with(one)), want{">=", 0.9, "asynq"}),
		newBar("open-shared", "tasks/s", sidesOf(opening, tdfTasks.with(shared), asynqTasks), want{">=", 1.5, "asynq"}),
		newBar("life-cycle", "tasks/s", sidesOf(lives, tdfWhole, asynqTasks, bullmqTasks), want{">=", 1.15, "asynq"}),
		newBar("typed", "tasks/s", sidesOf(lives, tdfWhole.with(job{Batch: 1000, Typed: true}),
			asynqTasks.with(job{Callers: 16, Typed: true})), want{">=", 1, "asynq"}),
		newBar("redis-cpu", "µs of Redis CPU", sidesOf(redisCPU, tdfWhole.with(one), bullmqTasks.with(one)),
			want{"<=", 0.95, "BullMQ"}),
		newBar("pickup", "ms", sidesOf(pickup, tdfWhole, bullmqTasks), want{"<=", 0.5, "BullMQ"}),
		newBar("memory", "bytes per open task", sidesOf(memory, tdfTasks, tdfDefaults, asynqTasks, bullmqTasks),
			want{"<=", 1.1, "asynq"}),
		newBar("chain", "ms per link", sidesOf(chains, tdfWhole), want{"<=", 5, ""}),
		newBar("run", "runs/s", runSides(), want{">=", 0.9, "Go os/exec"}, want{">=", 1, "Go os/exec, files"},
			want{">=", 8, "GNU parallel"}),
		newBar("command", "commands/s", commandSides(), want{">=", 4, "GNU parallel"}, want{">=", 0.5, "xargs"}),
	}
}

func newBar(name, unit string, sides []side, wants ...want) *bar {
	return &bar{name: name, unit: unit, sides: sides, wants: wants, figures: map[string][]figure{}}
}

// measure measures all sides in turns. In every second round, it measures them in reverse order.
func (b *bar) measure(ctx context.Context, rounds int, s size) error {
	for round := range rounds {
		order := slices.Clone(b.sides)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, side := range order {
			f, err := side.run(ctx, s)
			if err != nil {
				return fmt.Errorf("%s: %w", side.name, err)
			}
			fmt.Fprintf(os.Stderr, "%s, round %d, %s: %s %s\n", b.name, round+1, side.name, format(f.value), b.unit)
			b.figures[side.name] = append(b.figures[side.name], f)
		}
	}
	return nil
}

// print writes a line of the table for each side. What a side does not measure is 0.
func (b *bar) print(out io.Writer) {
	for _, s := range b.sides {
		of := func(field func(figure) float64) (all []float64) {
			for _, f := range b.figures[s.name] {
				all = append(all, field(f))
			}
			return all
		}
		fmt.Fprintf(out, "%-12s %-24s %-28s %-20s Redis %.1f µs, %.1f commands; tool %.0f µs\n", b.name, s.name,
			spread(of(func(f figure) float64 { return f.value })), b.unit, median(of(func(f figure) float64 { return f.cpu })),
			median(of(func(f figure) float64 { return f.commands })), median(of(func(f figure) float64 { return f.tool })))
	}
}

// line returns the verdict about a limit, such as
//
//	bar open-bulk 1.82 (1.61-2.01) × asynq want >= 2: short
func (b *bar) line(w want) string {
	unit, samples := b.unit, []float64{}
	for i, f := range b.figures[b.sides[0].name] {
		x := f.value
		if w.side != "" {
			unit = "× " + w.side
			x /= b.figures[w.side][i].value
		}
		samples = append(samples, x)
	}
	verdict, m := "short", median(samples)
	if m == w.limit || (m < w.limit) == (w.sign == "<=") {
		verdict = "met"
	}
	return fmt.Sprintf("bar %s %s %s want %s %v: %s", b.name, spread(samples), unit, w.sign, w.limit, verdict)
}

// spread returns the median, the smallest and the largest value.
func spread(samples []float64) string {
	return fmt.Sprintf("%s (%s-%s)", format(median(samples)), format(slices.Min(samples)), format(slices.Max(samples)))
}

// median returns the middle value, or the mean of the two middle values.
func median(samples []float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// format formats a figure with about three digits.
func format(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}
