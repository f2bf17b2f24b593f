package admin

import (
	"context"

	"github.com/tdf-framework/tdf/redisstate/presence"
)

// DashboardLife is how long Redis keeps an address of [Admin.SetDashboard].
const DashboardLife = presence.DashboardLife

// SetDashboard stores the origin at which browsers reach the dashboard, such as https://tdf.example.org. If only the
// browsers of one host reach it, host is the name of this host, else "". The latest call counts, for [DashboardLife].
// It is best effort.
func (a *Admin) SetDashboard(ctx context.Context, host, origin string) error {
	return a.redis().Presence.SetDashboard(ctx, host, origin)
}

// Dashboard returns the origin of the dashboard for browsers on a host, or "" if none is known.
func (a *Admin) Dashboard(ctx context.Context, host string) (string, error) {
	return a.redis().Presence.Dashboard(ctx, host)
}
