package config

import (
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/localpass"
	"github.com/tdf-framework/tdf/internal/task"
)

const (
	embedded = "embedded"
	loopback = "127.0.0.1" // the embedded Redis listens only on this address
)

// Redis holds the address of Redis and the login (docs/configuration.md, "[redis]").
type Redis struct {
	Host     string // name, address or path of a socket; "embedded" is only for a server; default: "localhost"
	Port     int    // default: 6379
	Username string // "" means Redis's user "default"; default: ""
	Password string `json:"-"` // "" means no password; String does not show it; default: ""
	DB       int    // default: 0

	// The sentinels (host:port) that know the address of Redis; none means that Host and Port are the address.
	Sentinels        []string
	Master           string // the name of the Redis at the sentinels
	SentinelUsername string // "" means the sentinels' user "default"
	SentinelPassword string `json:"-"` // "" means that the sentinels have no password; String does not show it

	// Nodes (host:port) of a Redis Cluster; none means that Redis is no cluster.
	Cluster []string

	TLS   bool
	TLSCA string // a PEM file of trusted authorities; "" means the authorities that the system trusts
	// PEM files of the certificate by which Redis knows this client, and of its key; "" means none
	TLSCert, TLSKey string
	TLSServerName   string // the name in the certificates of Redis and the sentinels; "" means the host of the address
	// TLSConfig is what a program passes instead of these files and this name; nil means that it passes none.
	TLSConfig *tls.Config `json:"-"`

	Replicas Replicas
}

// Replicas says how many replicas must confirm the writes that open, execute, settle and archive tasks, and how long a
// call waits for them (docs/guarantees.md, "Confirmed writes").
type Replicas struct {
	Wanted  int           // 0 means none; at most 10; default: 0
	Timeout time.Duration // no key has it, because a second is longer than any lag of a replica that works; 0 means 1 s
}

// Embedded reports whether the server must run a Redis in its own process. It is always false for workers and managers.
func (r Redis) Embedded() bool { return r.Host == embedded }

// Addr returns host:port, or the path of a socket. The host of the embedded Redis is 127.0.0.1. With sentinels or a
// cluster, Addr returns a text that names them, because the address changes.
func (r Redis) Addr() string {
	switch {
	case len(r.Sentinels) > 0:
		return fmt.Sprintf("master %s of sentinels %s", r.Master, strings.Join(r.Sentinels, ", "))
	case len(r.Cluster) > 0:
		return "cluster " + strings.Join(r.Cluster, ", ")
	}
	host := r.Host
	if isSocket(host) {
		return host
	}
	if r.Embedded() {
		host = loopback
	}
	return net.JoinHostPort(host, strconv.Itoa(r.Port))
}

// Network returns the network of Addr, for [net.Dialer].
func (r Redis) Network() string {
	if isSocket(r.Host) {
		return "unix"
	}
	return "tcp"
}

// Fixed reports whether Redis always has the same address, so that no replica can take over.
func (r Redis) Fixed() bool { return len(r.Sentinels)+len(r.Cluster) == 0 }

// isSocket reports whether a host is the path of a socket on this machine.
func isSocket(host string) bool { return strings.HasPrefix(host, "/") }

// CheckHost returns an error if Host is neither the name or address of a host nor the path of a socket.
func (r Redis) CheckHost() error {
	if isHost(r.Host) {
		return nil
	}
	return &Error{Source: noFile, Section: "redis", Key: "host", Problem: fmt.Sprintf("%q: want %s", r.Host, wantHost)}
}

// CheckNamespace returns an *[Error] if a namespace cannot be in this Redis.
func (r Redis) CheckNamespace(namespace string) error {
	problem := r.refusesNamespaces(namespace)
	if problem == "" {
		return nil
	}
	return &Error{Source: noFile, Section: "tdf", Key: "namespace", Problem: problem}
}

// refusesNamespaces returns why namespaces cannot be in this Redis, or "" if they can. In a cluster, all keys of a
// namespace need the same hash tag, and two namespaces may have the same keys.
func (r Redis) refusesNamespaces(namespaces ...string) (why string) {
	if len(r.Cluster) == 0 {
		return ""
	}
	names := map[string]string{} // by the beginnings of the keys
	for _, namespace := range namespaces {
		beginning, ok := task.InCluster(namespace)
		if !ok {
			return namespace + " begins with }, so it cannot become a hash tag of the cluster; expected another name"
		}
		if other, ok := names[beginning]; ok {
			return other + " and " + namespace + " are the same namespace in a cluster; expected one of them"
		}
		names[beginning] = namespace
	}
	return ""
}

// Local reports whether Redis, or each sentinel or node, is on this machine. The only name that it accepts is
// localhost, because other names may lead to another machine.
func (r Redis) Local() bool {
	if r.Fixed() {
		return isLocal(r.Host)
	}
	return !slices.ContainsFunc(append(slices.Clip(r.Sentinels), r.Cluster...), func(addr string) bool {
		host, _, _ := net.SplitHostPort(addr)
		return !isLocal(host)
	})
}

func isLocal(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || isSocket(host) || ip != nil && ip.IsLoopback()
}

// Credentials returns nil if the configuration has a password, a user other than default, sentinels or a cluster.
// Otherwise it returns a function that finds the password that tdf up has made for its Redis (docs/tdf.md, "All of it
// on one machine"). The library go-redis calls the function for each new connection, because tdf up makes a new
// password each time it starts.
func (r Redis) Credentials() func() (user, password string) {
	if r.Password != "" || r.Username != "" && r.Username != "default" || !r.Fixed() {
		return nil
	}
	return func() (string, string) { return r.Username, localpass.Find(r.Host, r.Port) }
}

// String returns the address, the user and the database, without the password, for logs and errors.
func (r Redis) String() string {
	user, secure := "", ""
	if r.Username != "" {
		user = r.Username + "@"
	}
	if r.TLS {
		secure = " (TLS)"
	}
	return fmt.Sprintf("%s%s db %d%s", user, r.Addr(), r.DB, secure)
}

// GoString returns String, so that %#v does not show the password.
func (r Redis) GoString() string { return r.String() }
