package main

import (
	"errors"
	"fmt"
	"log/slog"
	"syscall"

	"github.com/tdf-framework/tdf/internal/command"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/embedded"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

func startEmbedded(cfg config.Redis, log *slog.Logger) (*embedded.Redis, error) {
	r, err := embedded.Start(cfg.Addr(), embedded.Password(cfg.Password), embedded.Scripts(command.Version(),
		lua.Sums()...))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("start embedded Redis: the address %s is in use; choose another [redis] port, or use "+
			"the Redis there with [redis] host=127.0.0.1", cfg.Addr())
	}
	if err != nil {
		return nil, err
	}
	log.Warn("embedded Redis without persistence", "redis", r.Addr())
	if cfg.Password == "" {
		log.Warn("embedded Redis without a password, set [redis] password", "redis", r.Addr())
	}
	return r, nil
}

// warn logs warnings about Redis settings that can lose tasks, that let other users in, or that cost memory or time
// (docs/operations.md, "Redis").
func warn(log *slog.Logger, cfg config.Redis, info conn.Info, untuned []conn.Tuning) {
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		log.Warn("redis evicts keys when its memory is full, set maxmemory-policy to noeviction", "maxmemory-policy",
			policy)
	}
	if info["aof_enabled"] == "0" {
		log.Warn("redis without append-only file, set appendonly to yes")
	}
	if cfg.Password == "" && !cfg.Local() {
		log.Warn("redis on a network without a password", "redis", cfg.Addr())
	}
	for _, t := range untuned {
		log.Warn("a setting of redis costs memory or time", "setting", t.Name, "value", t.Found, "better", t.Value,
			"costs", t.Costs)
	}
}
