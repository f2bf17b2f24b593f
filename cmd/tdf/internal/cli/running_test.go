package cli

import (
	"net"
	"testing"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
)

// Commands without an address use the only tdf up, or the one at the usual address. They never guess among others.
func TestChoose(t *testing.T) {
	const usual, second, third = "127.0.0.1:6379", "127.0.0.1:6380", "127.0.0.1:6381"
	for _, c := range []struct {
		running []string
		want    string
	}{{nil, ""}, {[]string{second}, second}, {[]string{second, usual}, usual}} {
		expect.Equal(t, expect.Result(choose(c.running, usual)).Value(t), c.want, c.running)
	}
	expect.Result(choose([]string{third, second}, usual)).Fails(t,
		"several tdf up run, with Redis at 127.0.0.1:6380, 127.0.0.1:6381: name one with --redis")
}

func TestReachASocket(t *testing.T) {
	at := config.Redis{Host: t.TempDir() + "/redis.sock"}
	expect.Fails(t, reach(t.Context(), at), at.Host)
	l := expect.Result(new(net.ListenConfig).Listen(t.Context(), "unix", at.Host)).Value(t)
	defer l.Close()
	expect.NoError(t, reach(t.Context(), at))
}
