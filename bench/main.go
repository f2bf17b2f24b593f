// Command bench measures the cost of TDF's calls, compared with asynq. Compare only figures of the same run, because
// the load of the machine differs between two runs (docs/development.md, "Measuring").
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"text/tabwriter"
	"time"

	"github.com/tdf-framework/tdf/bench/redisserver"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/redisstate"
)

func main() {
	tasks := flag.Int("tasks", 20_000, "number of tasks of each measurement")
	flag.Parse()
	if err := run(context.Background(), *tasks, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, tasks int, out io.Writer) error {
	r, err := redisserver.Start()
	if err != nil {
		return err
	}
	defer r.Stop()
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(out, "%d tasks per measurement; redis-server without persistence on loopback\n\n", tasks)
	fmt.Fprintln(w, "call\tbatch\ttasks/s\tµs of Redis CPU per task\tcommands per task\t")
	for _, batch := range []int{1, 1000} {
		if err := life(ctx, r, w, batch, tasks); err != nil {
			return err
		}
	}
	if err := peer(ctx, r, w, tasks); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return pickup(ctx, r, out)
}

// A meter measures the cost of one kind of call.
type meter struct {
	r     *redisserver.Server
	w     io.Writer
	tasks int
	total redisserver.Usage
	spent time.Duration
}

func (m *meter) measure(ctx context.Context, call, batch string, work func() error) error {
	before, err := m.r.Usage(ctx)
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := work(); err != nil {
		return fmt.Errorf("%s: %w", call, err)
	}
	spent := time.Since(begun)
	after, err := m.r.Usage(ctx)
	if err != nil {
		return err
	}
	used := after.Minus(before)
	m.total, m.spent = m.total.Plus(used), m.spent+spent
	m.print(call, batch, used, spent)
	return nil
}

func (m *meter) print(call, batch string, u redisserver.Usage, spent time.Duration) {
	n := float64(m.tasks)
	fmt.Fprintf(m.w, "%s\t%s\t%.0f\t%.1f\t%.2f\t\n", call, batch, n/spent.Seconds(), u.CPU/n*1e6, u.Commands/n)
}

func connect(ctx context.Context, r *redisserver.Server, namespace string) (*redisstate.Store, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	return redisstate.Connect(ctx, config.Redis{Host: "127.0.0.1", Port: r.Port}, namespace, log)
}
