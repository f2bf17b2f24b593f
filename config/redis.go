package config

import (
	"fmt"
	"net"
	"strconv"
)

const (
	embedded = "embedded"
	loopback = "127.0.0.1" // address of the embedded Redis
)

// Redis is the address of Redis and the login: section [redis].
type Redis struct {
	Host     string // default: "localhost"; "embedded" only in a Server
	Port     int    // default: 6379
	Username string // default: "", which is Redis's user "default"
	Password string `json:"-"` // default: "", no password; String leaves it out
	DB       int    // default: 0

	TLS           bool
	TLSCA         string // a PEM file; "": the authorities that the system trusts
	TLSServerName string // the name in Redis's certificate; "": Host
}

// Embedded reports whether the server must run a Redis in its own process, in memory, at Addr. It is always false
// for workers and managers.
func (r Redis) Embedded() bool { return r.Host == embedded }

// Addr returns host:port. The host of the embedded Redis is 127.0.0.1.
func (r Redis) Addr() string {
	host := r.Host
	if r.Embedded() {
		host = loopback
	}
	return net.JoinHostPort(host, strconv.Itoa(r.Port))
}

// String describes the Redis for logs and errors, without the password.
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

// GoString returns String, so that %#v does not show the password.
func (r Redis) GoString() string { return r.String() }
