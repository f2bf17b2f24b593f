package apiserver

import (
	"log/slog"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/web/skuld"
	"github.com/tdf-framework/tdf/web/taskmaster"
	"github.com/tdf-framework/tdf/web/taskstore"
	"github.com/tdf-framework/tdf/web/wire"
)

// interfaces returns the interfaces of other systems that the configuration enables.
func interfaces(cfg config.HTTP, m *manager.Manager, log *slog.Logger) (all []wire.Interface) {
	if cfg.Taskmaster != "" {
		all = append(all, taskmaster.New(m, taskmaster.Options{
			Prefix: cfg.Taskmaster, Stale: cfg.TaskmasterStale, Dead: cfg.TaskmasterDead, Timeout: callTime,
			Log: log,
		}))
	}
	if cfg.TaskStore != "" {
		all = append(all, wire.Interface{Prefix: cfg.TaskStore, Routes: taskstore.Routes(m)})
	}
	if cfg.Skuld != "" {
		all = append(all, skuld.New(cfg.Skuld, m))
	}
	return all
}
