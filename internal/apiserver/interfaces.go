package apiserver

import (
	"log/slog"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/web/skuld"
	"github.com/tdf-framework/tdf/internal/web/taskmaster"
	"github.com/tdf-framework/tdf/internal/web/taskstore"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/manager"
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
