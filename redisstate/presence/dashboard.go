package presence

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/config"
)

// Bounds of the addresses of dashboards.
const (
	DashboardLife = time.Minute
	longestOrigin = 300 // bytes
)

// SetDashboard stores the origin at which browsers reach the dashboard, such as https://tdf.example.org. If only the
// browsers of one host reach it, host is the name of this host, else "". The latest call counts, for [DashboardLife].
func (s *Presence) SetDashboard(ctx context.Context, host, origin string) error {
	return s.Conn.BestEffort(ctx, "store the address of the dashboard", func(p redis.Pipeliner) {
		p.Set(ctx, s.Conn.Keys.Dashboard(host), origin, DashboardLife)
	})
}

// Dashboard returns the origin of the dashboard for browsers on a host: one that all hosts reach, or else one that only
// this host reaches. It returns "" if none is known. Because other programs may have written the keys, it returns
// nothing but an http or https origin of at most 300 bytes.
func (s *Presence) Dashboard(ctx context.Context, host string) (string, error) {
	var all, own *redis.StringCmd
	err := s.Conn.Pipeline(ctx, "read the address of the dashboard", func(p redis.Pipeliner) {
		all = p.GetRange(ctx, s.Conn.Keys.Dashboard(""), 0, longestOrigin)
		own = p.GetRange(ctx, s.Conn.Keys.Dashboard(host), 0, longestOrigin)
	})
	if err != nil {
		return "", err
	}
	for _, c := range []*redis.StringCmd{all, own} {
		if origin := c.Val(); len(origin) <= longestOrigin && config.IsOrigin(origin) {
			return origin, nil
		}
	}
	return "", nil
}
