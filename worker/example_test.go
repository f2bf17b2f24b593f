package worker_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/worker"
)

// squares runs rounds in this process.
type squares struct{}

func (squares) Run(ctx context.Context, r *worker.Round) (worker.Ended, error) {
	n, err := strconv.Atoi(strings.Join(r.Args, " "))
	if err != nil {
		return worker.Ended{}, err // the round has failed: exit status 1, and this text
	}
	fmt.Fprintln(r.Stdout, n*n)
	return worker.Ended{}, ctx.Err() // not nil when the round has to end
}

// The worker of docs/programs.md, "Rounds without a process". It needs a Redis and a server.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := config.LoadWorker("worker.cfg")
	if err != nil {
		log.Fatal(err)
	}
	store, err := redisstate.Connect(ctx, cfg.Redis, cfg.Namespace, slog.Default())
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	w, err := worker.New("squares-1", cfg, store, slog.Default())
	if err != nil {
		log.Fatal(err)
	}
	w.Runner = squares{}
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
