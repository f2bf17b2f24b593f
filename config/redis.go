package config

import (
	"fmt"
	"net"
	"strconv"
)

const (
	embedded = "embedded"
	loopback = "127.0.0.1" // where the embedded one listens
)

// Redis says where Redis is and how to log in: section [redis].
type Redis struct {
	Host     string // default: "localhost"; "embedded" only in a Server
	Port     int    // default: 6379
	Username string // default: "", Redis's user "default"
	Password string `json:"-"` // default: "", none; String leaves it out
	DB       int    // default: 0

	TLS           bool
	TLSCA         string // a PEM file; "": the authorities that the system trusts
	TLSServerName string // the name in Redis's certificate; "": Host
}

// Embedded reports whether the server is to run a Redis of its own, in memory, at Addr.
// It is never true of a Worker's or a Manager's Redis.
func (r Redis) Embedded() bool { return r.Host == embedded }

// Addr returns host:port, for the embedded Redis on the loopback interface.
func (r Redis) Addr() string {
	host := r.Host
	if r.Embedded() {
		host = loopback
	}
	return net.JoinHostPort(host, strconv.Itoa(r.Port))
}

// String names the Redis for logs and errors, without its password.
func (r Redis) String() string {
	user, tls := "", ""
	if r.Username != "" {
		user = r.Username + "@"
	}
	if r.TLS {
		tls = " (TLS)"
	}
	return fmt.Sprintf("%s%s db %d%s", user, r.Addr(), r.DB, tls)
}

// GoString is String: %#v leaves the password out, too.
func (r Redis) GoString() string { return r.String() }
