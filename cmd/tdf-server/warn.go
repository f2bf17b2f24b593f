package main

import (
	"log/slog"
	"net"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/redisstate"
)

// warn says what about a Redis may cost tasks, or let others in (docs/operations.md, "Redis").
func warn(log *slog.Logger, cfg config.Redis, info redisstate.Info) {
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		log.Warn("redis throws keys away when its memory is full, and tasks with them: set maxmemory-policy to noeviction", "maxmemory-policy", policy)
	}
	if info["aof_enabled"] == "0" {
		log.Warn("redis keeps no append-only file: what happened since its last snapshot is lost when it stops; set appendonly to yes")
	}
	if cfg.Password == "" && !loopback(cfg.Host) {
		log.Warn("redis is reached over a network without a password: whoever reaches it can run programs on the workers", "redis", cfg.Addr())
	}
}

// loopback does not look names up: one that is no address may be anybody's.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
