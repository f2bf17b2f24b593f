package config

import (
	"fmt"
	"net"
	"strconv"
)

const (
	embedded = "embedded"
	loopback = "127.0.0.1" // the embedded Redis listens only on this address
)

// Redis holds the address of Redis and the login (docs/configuration.md, "[redis]").
type Redis struct {
	Host     string // name or address; "embedded" is valid only for a server; default: "localhost"
	Port     int    // default: 6379
	Username string // "" means Redis's user "default"; default: ""
	Password string `json:"-"` // "" means no password; String does not show it; default: ""
	DB       int    // default: 0

	TLS           bool
	TLSCA         string // a PEM file of trusted authorities; "" means the authorities that the system trusts
	TLSServerName string // the name in Redis's certificate; "" means the name in Host
}

// Embedded reports whether the server must run a Redis in its own process. It is always false for workers and managers.
func (r Redis) Embedded() bool { return r.Host == embedded }

// Addr returns host:port. The host of the embedded Redis is 127.0.0.1.
func (r Redis) Addr() string {
	host := r.Host
	if r.Embedded() {
		host = loopback
	}
	return net.JoinHostPort(host, strconv.Itoa(r.Port))
}

// String returns the address, the user and the database, without the password, for logs and errors.
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
