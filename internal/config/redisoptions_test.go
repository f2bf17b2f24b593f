package config

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestRedisFrom(t *testing.T) {
	secure := &tls.Config{MinVersion: tls.VersionTLS13}
	for _, c := range []struct {
		o    redis.UniversalOptions
		want Redis
		addr string
	}{
		{redis.UniversalOptions{}, Redis{Host: "localhost", Port: 6379}, "localhost:6379"},
		{
			redis.UniversalOptions{Addrs: []string{"db:7000"}, Username: "u", Password: "p", DB: 3, TLSConfig: secure},
			Redis{Host: "db", Port: 7000, Username: "u", Password: "p", DB: 3, TLS: true, TLSConfig: secure},
			"db:7000",
		},
		{redis.UniversalOptions{Addrs: []string{":7000"}}, Redis{Host: "localhost", Port: 7000}, "localhost:7000"},
		{redis.UniversalOptions{Addrs: []string{"[::1]:7000"}}, Redis{Host: "::1", Port: 7000}, "[::1]:7000"},
		{redis.UniversalOptions{Addrs: []string{"/run/redis.sock"}}, Redis{Host: "/run/redis.sock", Port: 6379}, "/run/redis.sock"},
		{
			redis.UniversalOptions{Addrs: []string{"a:1", "b:2"}, MasterName: "m", SentinelPassword: "s"},
			Redis{Host: "localhost", Port: 6379, Sentinels: []string{"a:1", "b:2"}, Master: "m", SentinelPassword: "s"},
			"master m of sentinels a:1, b:2",
		},
		{
			redis.UniversalOptions{Addrs: []string{"a:1", "b:2"}},
			Redis{Host: "localhost", Port: 6379, Cluster: []string{"a:1", "b:2"}},
			"cluster a:1, b:2",
		},
	} {
		got := expect.Result(RedisFrom(&c.o)).Value(t, c.addr)
		expect.Equal(t, got, c.want, c.addr)
		expect.Equal(t, got.Addr(), c.addr)
	}
}

func TestRedisFromRefuses(t *testing.T) {
	for want, o := range map[string]redis.UniversalOptions{
		"Dialer":              {Dialer: (&net.Dialer{}).DialContext},
		"CredentialsProvider": {CredentialsProvider: func() (string, string) { return "", "" }},
		`"db"`:                {Addrs: []string{"db"}},
		`"db:99999"`:          {Addrs: []string{"db:99999"}},
		`"a b:1"`:             {Addrs: []string{"a b:1"}},
		`"embedded:1"`:        {Addrs: []string{"embedded:1"}},
	} {
		_, err := RedisFrom(&o)
		expect.True(t, errors.As(err, new(*Error)), want)
		expect.Contains(t, err.Error(), want)
	}
}
