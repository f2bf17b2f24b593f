// Command tdf-server decides which tasks have succeeded, failed, timed out or expired:
//
//	tdf-server NAME FILE.cfg
//
// docs/operations.md tells how to run it, docs/configuration.md what the file holds.
package main

import (
	"context"
	"io"
	"log/slog"
	"os"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/command"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/server"
)

const (
	name = "tdf-server"
	what = "Decides which tasks have succeeded, failed, timed out or expired. One is enough, several are\nharmless."
)

func main() {
	command.Hide()
	told, _ := command.Signals()
	os.Exit(run(told, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole command; it stops when told ends.
func run(told context.Context, args []string, stdout, stderr io.Writer) int {
	err := serve(told, args, stdout, stderr)
	return command.Status(told, name, err, stderr)
}

func serve(told context.Context, args []string, stdout, stderr io.Writer) error {
	arguments, err := command.Parse(name, what, args, stdout)
	if err != nil {
		return err
	}
	cfg, err := config.LoadServer(arguments.File)
	if err != nil {
		return err
	}
	log := cfg.Log.Logger(stderr).With("server", arguments.Name)
	if cfg.Redis.Embedded() {
		redis, err := startEmbedded(cfg.Redis, log)
		if err != nil {
			return err
		}
		defer redis.Close()
	}
	store, err := redisstate.Connect(told, cfg.Redis, cfg.Namespace, log)
	if err != nil {
		return err
	}
	defer store.Close()
	return serveWith(told, arguments.Name, cfg, store, log)
}

func serveWith(told context.Context, name string, cfg config.Server, store *redisstate.Store, log *slog.Logger) error {
	if !cfg.Redis.Embedded() {
		info, err := store.Info(told, "memory", "persistence")
		if err != nil {
			return err
		}
		warn(log, cfg.Redis, info)
	}
	log.Info("serving", "namespace", cfg.Namespace, "redis", cfg.Redis)
	err := server.New(name, cfg, store, log).Run(told)
	log.Info("stopped")
	return err
}
