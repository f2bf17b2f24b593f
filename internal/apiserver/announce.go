package apiserver

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"os"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// origin returns the origin at which browsers reach the dashboard. If only the browsers of this machine reach it, local
// is true. The address at is where the API listens.
func origin(cfg config.HTTP, at string) (origin string, local bool) {
	if cfg.Public != "" {
		return cfg.Public, false
	}
	u, err := url.Parse(at)
	if err != nil {
		return "", true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	switch {
	case err == nil && ip.IsLoopback():
		return at, true
	case len(cfg.Hosts) > 0:
		u.Host = net.JoinHostPort(cfg.Hosts[0], u.Port())
		return u.String(), false
	case err == nil && ip.IsUnspecified(): // other machines need an address of this one, which is unknown
		u.Host = net.JoinHostPort("localhost", u.Port())
		return u.String(), true
	}
	return at, false
}

// announce stores in Redis where browsers reach the dashboard, for tdf open and tdf watch, until ctx ends.
func announce(ctx context.Context, a *admin.Admin, cfg config.HTTP, at string) {
	origin, local := origin(cfg, at)
	host := ""
	if local {
		host, _ = os.Hostname()
	}
	if origin == "" || local && host == "" {
		return
	}
	for ctx.Err() == nil {
		_ = a.SetDashboard(ctx, host, origin) // best effort: the next call may succeed
		conn.Sleep(ctx, admin.DashboardLife/3)
	}
}
