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

	"github.com/tdf-framework/tdf/internal/command"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/notify"
	"github.com/tdf-framework/tdf/internal/server"
	"github.com/tdf-framework/tdf/redisstate"
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
	servers, err := connect(ctx, tool, log)
	defer closeAll(servers)
	if err != nil {
		return tool.Locate(err)
	}
	api, err := openAPI(ctx, arguments.Name, tool, log)
	if err != nil {
		return tool.Locate(err)
	}
	defer api.close()
	runs := []func(context.Context) error{api.run}
	for _, s := range servers {
		runs = append(runs, s.notifier.Run, func(ctx context.Context) error { return s.serve(ctx, arguments.Name) })
	}
	return together(ctx, runs...)
}

// A namespace is one that the server serves, over a connection of its own.
type namespace struct {
	cfg      config.Server
	store    *redisstate.Store
	notifier *notify.Notifier
	log      *slog.Logger // names the namespace, if there are several
	base     *slog.Logger
}

// connect connects to the namespaces of the configuration. The caller must close them, even after an error.
func connect(ctx context.Context, tool config.Tool, log *slog.Logger) (all []*namespace, err error) {
	names := tool.Server.Namespaces
	if len(names) < 2 {
		names = []string{tool.Server.Namespace}
	}
	for _, name := range names {
		n := &namespace{cfg: tool.Server, log: log.With("namespace", name), base: log}
		n.cfg.Namespace = name
		if len(names) == 1 {
			n.log = log
		}
		if n.store, err = redisstate.Connect(ctx, n.cfg.Redis, name, n.log); err != nil {
			return all, err
		}
		all = append(all, n)
		n.store.Counters.KeepCounts()
		if n.notifier, err = notify.New(tool.Notify, name, n.store, n.log); err != nil {
			return all, err
		}
	}
	return all, nil
}

func closeAll(all []*namespace) {
	for _, n := range all {
		n.store.Close()
	}
}

// serve serves the namespace until ctx ends.
func (n *namespace) serve(ctx context.Context, name string) error {
	if !n.cfg.Redis.Embedded() {
		info, err := n.store.Conn.Info(ctx, "memory", "persistence")
		if err != nil {
			return err
		}
		if err := n.store.Conn.CheckRights(ctx); err != nil {
			return err
		}
		untuned, err := n.store.Conn.Untuned(ctx)
		if err != nil {
			return err
		}
		warn(n.log, n.cfg.Redis, info, untuned)
	}
	n.base.Info("serving", "namespace", n.cfg.Namespace, "redis", n.cfg.Redis)
	err := server.New(name, n.cfg, n.store, n.log).Run(ctx)
	n.log.Info("stopped")
	return err
}
