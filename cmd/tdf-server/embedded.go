package main

import (
	"errors"
	"fmt"
	"log/slog"
	"syscall"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/command"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/embedded"
)

func startEmbedded(cfg config.Redis, log *slog.Logger) (*embedded.Redis, error) {
	r, err := embedded.Start(cfg.Addr(), embedded.Password(cfg.Password), embedded.Scripts(command.Version(), redisstate.Scripts()...))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("the embedded Redis cannot listen on %s: somebody else does; choose another [redis] port, or use what is there with [redis] host=127.0.0.1", cfg.Addr())
	}
	if err != nil {
		return nil, err
	}
	log.Warn("an embedded Redis is used: nothing in it is kept when this server stops", "redis", r.Addr())
	if cfg.Password == "" {
		log.Warn("the embedded Redis has no password: every user of this machine can run programs on the workers; set [redis] password", "redis", r.Addr())
	}
	return r, nil
}
