// Command tdf-server settles due tasks: it decides whether they succeeded, failed, timed out or expired.
//
//	tdf-server NAME FILE.cfg
//
// docs/operations.md explains how to run the command. docs/configuration.md explains the configuration file.
package main

import (
	"context"
	"io"
	"log/slog"
	"os"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/command"
	"github.com/tdf-framework/tdf/notify"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/server"
)

const (
	name        = "tdf-server"
	description = "Decides whether due tasks succeeded, failed, timed out or expired. One server is " +
		"enough;\nseveral may run at once. With [http] listen, it also serves the HTTP API."
)

func main() {
	command.Hide()
	stop, _ := command.Signals()
	os.Exit(run(stop, os.Args[1:], os.Stdout, os.Stderr))
}

// run runs the command until ctx ends, and returns its exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := serve(ctx, args, stdout, stderr)
	return command.Status(ctx, name, err, stderr)
}

func serve(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	arguments, err := command.Parse(name, description, args, stdout)
	if err != nil {
		return err
	}
	tool, err := config.LoadTool(arguments.File, os.Environ())
	if err != nil {
		return err
	}
	cfg := tool.Server
	log := cfg.Log.Logger(stderr).With("server", arguments.Name)
	if cfg.Redis.Embedded() {
		redis, err := startEmbedded(cfg.Redis, log)
		if err != nil {
			return err
		}
		defer redis.Close()
	}
	store, err := redisstate.Connect(ctx, cfg.Redis, cfg.Namespace, log)
	if err != nil {
		return err
	}
	defer store.Close()
	store.KeepCounts()
	api, err := openAPI(ctx, arguments.Name, tool, log)
	if err != nil {
		return tool.Locate(err)
	}
	defer api.close()
	notifier, err := notify.New(tool.Notify, cfg.Namespace, store, log)
	if err != nil {
		return tool.Locate(err)
	}
	return both(ctx, api.run, func(ctx context.Context) error {
		return both(ctx, notifier.Run, func(ctx context.Context) error {
			return serveWith(ctx, arguments.Name, cfg, store, log)
		})
	})
}

func serveWith(ctx context.Context, name string, cfg config.Server, store *redisstate.Store, log *slog.Logger) error {
	if !cfg.Redis.Embedded() {
		info, err := store.Info(ctx, "memory", "persistence")
		if err != nil {
			return err
		}
		untuned, err := store.Untuned(ctx)
		if err != nil {
			return err
		}
		warn(log, cfg.Redis, info, untuned)
	}
	log.Info("serving", "namespace", cfg.Namespace, "redis", cfg.Redis)
	err := server.New(name, cfg, store, log).Run(ctx)
	log.Info("stopped")
	return err
}
