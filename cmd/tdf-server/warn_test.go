package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

func TestWarn(t *testing.T) {
	const eviction, file, password = "noeviction", "append-only file", "without a password"
	const memory = "twice as much memory"
	careful := conn.Info{"maxmemory_policy": "noeviction", "aof_enabled": "1"}
	for name, c := range map[string]struct {
		redis    config.Redis
		info     conn.Info
		listpack string
		want     string
	}{
		"careful":             {config.Redis{Host: "localhost"}, careful, "", ""},
		"unknown settings":    {config.Redis{Host: "127.0.0.1"}, conn.Info{}, "", ""},
		"evicts":              {config.Redis{Host: "::1"}, conn.Info{"maxmemory_policy": "volatile-lru"}, "", eviction},
		"no append-only file": {config.Redis{Host: "127.8.8.8"}, conn.Info{"aof_enabled": "0"}, "", file},
		"on a network":        {config.Redis{Host: "10.0.0.1"}, careful, "", password},
		"on a network, name":  {config.Redis{Host: "localhost.example"}, careful, "", password},
		"with a password":     {config.Redis{Host: "10.0.0.1", Password: "x"}, careful, "", ""},
		"small listpack":      {config.Redis{Host: "localhost"}, careful, "64", memory},
	} {
		var log bytes.Buffer
		warn(slog.New(slog.NewTextHandler(&log, nil)), c.redis, c.info, c.listpack)
		for _, text := range []string{eviction, file, password, memory} {
			expect.Equal(t, strings.Contains(log.String(), text), text == c.want, name, text, "is in the log", log.String())
		}
	}
}
