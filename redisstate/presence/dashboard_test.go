package presence

import (
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/internal/expect"
)

// An address for all hosts goes before one for a single host, and both expire.
func TestDashboard(t *testing.T) {
	onEach(t, func(t *testing.T, s *Presence) {
		expect.Result(s.Dashboard(t.Context(), "a")).Is(t, "")
		expect.NoError(t, s.SetDashboard(t.Context(), "a", "http://127.0.0.1:7379"))
		expect.Result(s.Dashboard(t.Context(), "a")).Is(t, "http://127.0.0.1:7379")
		expect.Result(s.Dashboard(t.Context(), "b")).Is(t, "")
		expect.NoError(t, s.SetDashboard(t.Context(), "", "https://tdf.example.org"))
		expect.Result(s.Dashboard(t.Context(), "a")).Is(t, "https://tdf.example.org")
		for _, host := range []string{"", "a"} {
			left := s.Conn.Redis.PTTL(t.Context(), s.Conn.Keys.Dashboard(host)).Val()
			expect.Compare(t, left, ">", 0)
			expect.Compare(t, left, "<=", DashboardLife)
		}
	})
}

// What other programs have written to the keys is no address unless it is an origin.
func TestHostileDashboard(t *testing.T) {
	s := of(conntest.New(t))
	for _, origin := range []string{
		"", "javascript:alert(1)", "file:///etc/passwd", "ftp://a", "http://", "http://a/b", "http://a?b", "http://u@a", "http://a\x1b[2J", "http://a\r\nb", "http://a b",
		"http://a\u202eb", "http://<b>", "http://a'b", "\x00http://a", "http://" + strings.Repeat("a", 294), "http://" + strings.Repeat("a", 1<<20),
	} {
		expect.NoError(t, s.Conn.Redis.Set(t.Context(), s.Conn.Keys.Dashboard(""), origin, 0).Err())
		expect.Result(s.Dashboard(t.Context(), "a")).Is(t, "", origin[:min(len(origin), 50)])
	}
	expect.NoError(t, s.Conn.Redis.Del(t.Context(), s.Conn.Keys.Dashboard("")).Err())
	expect.NoError(t, s.Conn.Redis.LPush(t.Context(), s.Conn.Keys.Dashboard(""), "http://a").Err())
	expect.NoError(t, s.SetDashboard(t.Context(), "a", "http://b"))
	expect.Result(s.Dashboard(t.Context(), "a")).Is(t, "http://b", "beside a key of another type")
}
