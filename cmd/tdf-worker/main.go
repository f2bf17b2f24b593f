// Command tdf-worker claims tasks, runs their programs and reports the results.
//
//	tdf-worker [FLAGS] NAME FILE.cfg
//
// docs/operations.md explains how to run the command. docs/configuration.md explains the configuration file.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"

	"github.com/tdf-framework/tdf/fetch/archive"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/command"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/metrics"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/worker"
)

const (
	name        = "tdf-worker"
	description = "Claims tasks, fetches and runs their programs, and stores their output. The name must be unique\n" +
		"in each of its namespaces. It must not contain a slash or begin with a dot."
)

func main() {
	command.Hide()
	stop, stopNow := command.Signals()
	os.Exit(run(stop, stopNow, os.Args[1:], os.Stdout, os.Stderr))
}

// run runs the command and returns its exit status. When stop ends, the worker drains. When stopNow ends,
// the worker ends its programs at once.
func run(stop, stopNow context.Context, args []string, stdout, stderr io.Writer) int {
	err := work(stop, stopNow, args, stdout, stderr)
	return command.Status(stop, name, err, stderr)
}

func work(stop, stopNow context.Context, args []string, stdout, stderr io.Writer) error {
	var set jobFlags
	arguments, err := command.Parse(name, description, args, stdout, set.flags()...)
	if err != nil {
		return err
	}
	if err := worker.CheckName(arguments.Name); err != nil {
		return &command.UsageError{Problem: err.Error()}
	}
	cfg, err := config.LoadWorker(arguments.File, set.keys...)
	if err != nil {
		return err
	}
	cfg.TimeLimit, cfg.IdleTimeout = set.timeLimit, set.idleTimeout
	syscall.Umask(0o022) // make the files of programs readable, whatever the umask of the worker's user
	log := cfg.Log.Logger(stderr).With("worker", arguments.Name)
	err = start(stop, stopNow, arguments.Name, cfg, log)
	if invalid := new(config.Error); errors.As(err, &invalid) {
		set.locate(invalid, arguments.File)
	}
	return err
}

func start(stop, stopNow context.Context, name string, cfg config.Worker, log *slog.Logger) error {
	w, err := worker.New(name, cfg, worker.WithLog(log), worker.WithArchives(archive.Compressions()...),
		worker.WithVersion(command.Version()), worker.WithSole())
	if err != nil {
		return err
	}
	defer context.AfterFunc(stopNow, w.StopNow)()
	return runWith(stop, w, cfg, log)
}

// runWith runs the worker, and serves its metrics if the configuration has an address for them.
func runWith(stop context.Context, w *worker.Worker, cfg config.Worker, log *slog.Logger) error {
	if cfg.MetricsListen == "" {
		return w.Run(stop)
	}
	m, err := manager.New(manager.Options{Redis: cfg.Redis, Namespace: cfg.Namespace, Log: log})
	if err != nil {
		return fmt.Errorf("serve the metrics: %w", err)
	}
	defer m.Close()
	s, err := metrics.Listen(stop, cfg.MetricsListen, admin.New(m), log)
	if err != nil {
		return err
	}
	go s.Run()
	defer s.Close()
	log.Info("serving metrics", "address", s.Addr())
	return w.Run(stop)
}
