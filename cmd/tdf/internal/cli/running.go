package cli

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/localpass"
)

// Tool does the same as Configured. But if the user names no Redis and runs tdf up on this machine, the configuration
// is for the Redis of tdf up, at whatever port (docs/tdf.md, "All of it on one machine").
func (a *App) Tool(more ...config.Override) (config.Tool, error) {
	tool, err := a.Configured(more...)
	if err != nil || NamesRedis(tool) {
		return tool, err
	}
	usual := net.JoinHostPort("127.0.0.1", strconv.Itoa(tool.Manager.Redis.Port)) // tdf up takes it for localhost
	addr, err := choose(localpass.Running(), usual)
	if err != nil || addr == "" {
		return tool, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return tool, err
	}
	return a.Configured(append(more,
		config.Override{Section: "redis", Name: "host", Value: host, Source: "the running tdf up"},
		config.Override{Section: "redis", Name: "port", Value: port, Source: "the running tdf up"})...)
}

// NamesRedis reports whether the user says where Redis is, or who logs in there.
func NamesRedis(tool config.Tool) bool {
	return slices.ContainsFunc([]string{"host", "port", "sentinels", "cluster", "username", "password", "tls"},
		func(key string) bool { return tool.IsSet("redis", key) })
}

// choose returns the address of the only running tdf up, or the usual address if one of several has it. It returns ""
// if none runs.
func choose(running []string, usual string) (string, error) {
	switch {
	case len(running) == 0:
		return "", nil
	case slices.Contains(running, usual):
		return usual, nil
	case len(running) > 1:
		slices.Sort(running)
		return "", Usagef("several tdf up run, with Redis at %s: name one with --redis", strings.Join(running, ", "))
	}
	return running[0], nil
}
