package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A server whose user of Redis lacks a right ends with the name of the right.
func TestMissingRight(t *testing.T) {
	t.Parallel()
	cfg := conntest.Config(t, redistest.Start(t, redistest.Args("--user", "default", "on", "nopass", "~*", "&*", "+@all", "-zadd")).Addr)
	tool := config.Tool{Server: config.Server{Redis: cfg, Namespace: redistest.Namespace(t)}}
	servers := expect.Result(connect(t.Context(), tool, testspace.Silent)).Value(t)
	defer closeAll(servers)
	expect.Fails(t, servers[0].serve(t.Context(), "s"), "the user lacks the rights to ZADD; grant them (+zadd)")
}

func TestWarn(t *testing.T) {
	const eviction, file, password = "noeviction", "append-only file", "without a password"
	const tuning = "setting=hash-max-listpack-value value=64 better=1024"
	careful := conn.Info{"maxmemory_policy": "noeviction", "aof_enabled": "1"}
	for name, c := range map[string]struct {
		redis   config.Redis
		info    conn.Info
		untuned []conn.Tuning
		want    string
	}{
		"careful":             {config.Redis{Host: "localhost"}, careful, nil, ""},
		"unknown settings":    {config.Redis{Host: "127.0.0.1"}, conn.Info{}, nil, ""},
		"evicts":              {config.Redis{Host: "::1"}, conn.Info{"maxmemory_policy": "volatile-lru"}, nil, eviction},
		"no append-only file": {config.Redis{Host: "127.8.8.8"}, conn.Info{"aof_enabled": "0"}, nil, file},
		"on a network":        {config.Redis{Host: "10.0.0.1"}, careful, nil, password},
		"on a network, name":  {config.Redis{Host: "localhost.example"}, careful, nil, password},
		"with a password":     {config.Redis{Host: "10.0.0.1", Password: "x"}, careful, nil, ""},
		"untuned":             {config.Redis{Host: "localhost"}, careful, []conn.Tuning{{Name: "hash-max-listpack-value", Value: 1024, Found: "64"}}, tuning},
	} {
		var log bytes.Buffer
		warn(slog.New(slog.NewTextHandler(&log, nil)), c.redis, c.info, c.untuned)
		for _, text := range []string{eviction, file, password, tuning} {
			expect.Equal(t, strings.Contains(log.String(), text), text == c.want, name, text, "is in the log", log.String())
		}
	}
}
