package main

import (
	"errors"
	"fmt"
	"log/slog"
	"syscall"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/command"
	"github.com/tdf-framework/tdf/redisstate/embedded"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

func startEmbedded(cfg config.Redis, log *slog.Logger) (*embedded.Redis, error) {
	r, err := embedded.Start(cfg.Addr(), embedded.Password(cfg.Password), embedded.Scripts(command.Version(), lua.Sums()...))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("start embedded Redis: the address %s is in use; choose another [redis] port, or use the Redis there with [redis] host=127.0.0.1", cfg.Addr())
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
