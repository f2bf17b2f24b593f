package config

import (
	"cmp"
	"fmt"
	"net"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// RedisFrom returns the address and the login of a program's own Redis client. TDF makes connections of its own, whose
// replies, waits and repeated calls have its bounds, so it ignores what else the options say about connections. The
// error is an *[Error]: options that choose the address or the login at each connection cannot be kept.
func RedisFrom(o *redis.UniversalOptions) (Redis, error) {
	for name, set := range map[string]bool{
		"Dialer": o.Dialer != nil, "CredentialsProvider": o.CredentialsProvider != nil,
		"CredentialsProviderContext":   o.CredentialsProviderContext != nil,
		"StreamingCredentialsProvider": o.StreamingCredentialsProvider != nil,
	} {
		if set {
			return Redis{}, &Error{Source: "redis.UniversalOptions", Problem: name + " is set; want fixed values"}
		}
	}
	r := Redis{
		Host: "localhost", Port: 6379, Username: o.Username, Password: o.Password, DB: o.DB,
		TLS: o.TLSConfig != nil, TLSConfig: o.TLSConfig,
	}
	switch {
	case o.MasterName != "":
		r.Sentinels, r.Master = o.Addrs, o.MasterName
		r.SentinelUsername, r.SentinelPassword = o.SentinelUsername, o.SentinelPassword
	case len(o.Addrs) > 1 || o.IsClusterMode:
		r.Cluster = o.Addrs
	case len(o.Addrs) == 1 && isSocket(o.Addrs[0]):
		r.Host = o.Addrs[0]
	case len(o.Addrs) == 1:
		host, port, err := net.SplitHostPort(o.Addrs[0])
		if err == nil {
			r.Host = cmp.Or(host, r.Host)
			r.Port, err = strconv.Atoi(port)
		}
		if err != nil || r.Port < 1 || r.Port > 65535 || !isHost(r.Host) || r.Embedded() {
			return Redis{}, &Error{
				Source: "redis.UniversalOptions", Problem: fmt.Sprintf("Addrs has %q; want HOST:PORT", o.Addrs[0]),
			}
		}
	}
	return r, nil
}
