package apiserver

import (
	"os"
	"testing"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
)

func TestOrigin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at, host, public string
		want             string
		local            bool
	}{
		{at: "http://127.0.0.1:7379", want: "http://127.0.0.1:7379", local: true},
		{at: "http://[::1]:7379", want: "http://[::1]:7379", local: true},
		{at: "http://127.0.0.1:7379", host: "tdf.example.org", want: "http://127.0.0.1:7379", local: true},
		{at: "http://127.0.0.1:7379", host: "tdf.example.org", public: "https://tdf.example.org", want: "https://tdf.example.org"},
		{at: "https://[::]:7443", host: "tdf.example.org", want: "https://tdf.example.org:7443"},
		{at: "https://[::]:7443", want: "https://localhost:7443", local: true},
		{at: "https://192.0.2.7:7443", want: "https://192.0.2.7:7443"},
		{at: "https://192.0.2.7:7443", public: "http://lab:80", want: "http://lab:80"},
	} {
		cfg := config.HTTP{Public: c.public}
		if c.host != "" {
			cfg.Hosts = []string{c.host}
		}
		got, local := origin(cfg, c.at)
		expect.Equal(t, got, c.want)
		expect.Equal(t, local, c.local)
		expect.True(t, config.IsOrigin(got), c, "has the origin", got, local)
	}
}

// While a server runs, Redis has its address.
func TestAnnounce(t *testing.T) {
	m := newManager(t)
	s := run(t, usual(t), m, nil)
	host := expect.Result(os.Hostname()).Value(t)
	expect.Eventually(t, "the address in Redis", func() bool {
		return expect.Result(admin.New(m).Dashboard(t.Context(), host)).Value(t) == s.URL
	})
	expect.Result(admin.New(m).Dashboard(t.Context(), "another")).Is(t, "")
}
