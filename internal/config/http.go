package config

import (
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/lazy"
)

// HTTP is the configuration of the HTTP API (docs/configuration.md, "[http]").
type HTTP struct {
	Listen string   // HOST:PORT; "" means that tdf-server serves no API; default: ""
	Hosts  []string // names by which clients call the API, besides localhost and IP addresses

	TLSCert, TLSKey string // PEM files of the server's certificate and its key; "" means no TLS
	ClientCA        string // a PEM file of authorities whose certificates stand for tokens; "" means none
	Insecure        bool   // no TLS is necessary on an address that other machines can reach; default: false

	Blobs string // the directory of the blobs; "" means that there are none

	Users string // the file of the users who may log in to the dashboard with a password; "" means none

	// Proxies are the addresses of proxies whose headers name the client of a call; default: none
	Proxies []netip.Prefix

	// the origin in hosts, at which browsers reach the dashboard, such as https://tdf.example.org; "" means that of
	// Listen or of the first name in Hosts
	Public string

	// prefixes of the paths of other systems' interfaces, such as / or /ts; "" means that the API does not serve it
	Taskmaster, TaskStore, Skuld string

	// A worker of the Taskmaster interface that has been silent for TaskmasterStale is stale. After TaskmasterDead, it
	// is dead, and its tasks are lost.
	TaskmasterStale, TaskmasterDead time.Duration // defaults: 30 and 120 s
}

// interfaces returns the prefix of each key that has one.
func (h *HTTP) interfaces() map[string]string {
	return map[string]string{"taskmaster": h.Taskmaster, "taskstore": h.TaskStore, "skuld": h.Skuld}
}

// UsualListen is the address of the API of tdf serve and tdf up.
const UsualListen = "127.0.0.1:7379"

// HasTLS reports whether the API has TLS.
func (h HTTP) HasTLS() bool { return h.TLSCert != "" }

// OnLoopback reports whether only this machine can reach the address in Listen. The only name that it accepts is
// localhost, because other names may lead to another machine.
func (h HTTP) OnLoopback() bool {
	host, _, _ := net.SplitHostPort(h.Listen)
	return isLoopback(host)
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// checkHTTP returns an error if keys of [http] contradict each other, or if tokens would travel over a network without
// TLS.
func (s *settings) checkHTTP() error {
	switch h := s.http; {
	case h.TLSCert != "" && h.TLSKey == "":
		return s.fault("http", "tls_cert", "is set but tls_key is not; expected both, or none")
	case h.TLSKey != "" && h.TLSCert == "":
		return s.fault("http", "tls_key", "is set but tls_cert is not; expected both, or none")
	case h.ClientCA != "" && !h.HasTLS():
		return s.fault("http", "client_ca",
			"is set but tls_cert is not; expected tls_cert and tls_key, or no client_ca")
	case h.Listen != "" && !h.OnLoopback() && !h.HasTLS() && !h.Insecure:
		return s.fault("http", "listen", quote(h.Listen)+" is not a loopback address; expected tls_cert and "+
			"tls_key, or insecure=True behind a proxy that has TLS")
	case h.TaskmasterDead <= h.TaskmasterStale || h.TaskmasterDead < time.Second || h.TaskmasterDead > longestDead:
		return s.fault("http", "taskmaster_dead",
			"is not above taskmaster_stale; expected a longer time, from 1 to 300 s")
	}
	prefixes := s.http.interfaces()
	names := slices.Sorted(maps.Keys(prefixes))
	for i, name := range names {
		for _, other := range names[:i] {
			if meet(prefixes[name], prefixes[other]) {
				return s.fault("http", name, quote(prefixes[name])+" meets "+other+"="+prefixes[other]+
					"; expected paths of its own")
			}
		}
	}
	return nil
}

// longestDead is the longest lease that a worker over HTTP may have.
const longestDead = longestAPILease

// meet reports whether paths of two interfaces may be the same. An interface whose prefix is / has only paths that
// begin with one of reservedPaths, so that it meets no other prefix.
func meet(a, b string) bool {
	switch {
	case a == "" || b == "":
		return false
	case a == "/" || b == "/":
		return a == b
	}
	return strings.HasPrefix(a+"/", b+"/") || strings.HasPrefix(b+"/", a+"/")
}

// reservedPaths are the first parts of the paths of the API, and of interfaces whose prefix is /.
var reservedPaths = []string{
	"api", "docs", "errors", "healthz", "metrics", "openapi.json", "openapi.yaml", "readyz", // the API
	"actuator", "queues", "tasks", "workers", // Taskmaster
	"claim", "group", "groups", "task", "update", // TaskStore; also tasks
	// Skuld
	"claim_task", "clock", "complete", "count_queue", "count_tasks", "enqueue", "get_task", "list_tasks", "renew",
	"wipe",
}

var prefixForm = lazy.Regexp(`^(/[A-Za-z0-9_-]+)+$`)

// prefix returns the kind of the prefix of an interface's paths. Empty means none.
func prefix(at func(*settings) *string) kind {
	valid := func(s string) bool {
		return s == "" || s == "/" ||
			prefixForm().MatchString(s) && len(s) <= 100 && !slices.Contains(reservedPaths, strings.Split(s, "/")[1])
	}
	return matching("/, nothing, or a path such as /ts of letters, digits, hyphens and underscores that is no path "+
		"of the API", valid, at)
}

// address returns the kind of an address to listen on. Empty means none.
func address(at func(*settings) *string) kind {
	valid := func(s string) bool {
		host, port, err := net.SplitHostPort(s)
		_, number := strconv.ParseUint(port, 10, 16)
		return s == "" || err == nil && number == nil && plain(host) && !strings.ContainsAny(host, " /@")
	}
	return matching("HOST:PORT, :PORT for all addresses of the machine, or nothing", valid, at)
}

func isHostname(s string) bool { return !strings.ContainsAny(s, ":/@[]*") && plain(s) }

// networks returns the kind of a list of addresses and networks, such as 10.0.0.7 and 10.1.0.0/16.
func networks(at func(*settings) *[]netip.Prefix) kind {
	parse := func(s string) (all []netip.Prefix, ok bool) {
		for _, word := range words(s) {
			p, err := netip.ParsePrefix(word)
			if ip, wrong := netip.ParseAddr(word); wrong == nil {
				p, err = ip.Prefix(ip.BitLen())
			}
			if err != nil {
				return nil, false
			}
			all = append(all, p.Masked())
		}
		return all, true
	}
	return bind("IP addresses and networks such as 10.1.0.0/16, separated by blanks or commas", parse, at)
}

// hosts returns the kind of a list of names of hosts, one of which may be an origin.
func hosts() kind {
	return kind{"names of hosts without ports, separated by blanks or commas, one of which may be an address such as " +
		"https://tdf.example.org", func(s *settings, text string) bool {
		var names []string
		public := ""
		for _, word := range words(strings.ToLower(text)) {
			if public == "" && IsOrigin(word) {
				u, _ := url.Parse(word) // valid, because it is an origin
				public, word = word, u.Hostname()
				if strings.Contains(word, ":") {
					continue // an IP address is always possible
				}
			}
			if !isHostname(word) {
				return false
			}
			names = append(names, word)
		}
		s.http.Hosts, s.http.Public = names, public
		return true
	}}
}

// origin returns the kind of one origin, such as that of the API. Empty means none.
func origin(at func(*settings) *string) kind {
	return lower(matching("an origin such as https://tdf.example.org, or nothing", func(s string) bool {
		return s == "" || IsOrigin(s)
	}, at))
}

var hostAndPort = lazy.Regexp(`^[A-Za-z0-9.:_\[\]-]+$`)

// IsOrigin reports whether a text is the origin of web pages, such as https://lab.example.org or http://127.0.0.1:7379.
func IsOrigin(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && hostAndPort().MatchString(u.Host) &&
		u.Hostname() != "" && u.Scheme+"://"+u.Host == s
}

// lower returns a kind that stores the text in lower case.
func lower(k kind) kind {
	return kind{k.want, func(s *settings, text string) bool { return k.set(s, strings.ToLower(text)) }}
}

var httpKeys = []key{
	{
		"http", "listen", "", address(func(s *settings) *string { return &s.http.Listen }),
		"The address of the API. Port 0 is a free port. Empty means that `tdf-server` and `tdf up` serve no API. " +
			"`tdf serve` then uses " + UsualListen + ". On an address that is not a loopback address, the API needs " +
			"TLS or `insecure=True`, and at least one token, `client_ca` or `users`.",
	},
	{
		"http", "hosts", "", hosts(),
		"The names by which clients call the API. `localhost` and all IP addresses are always possible. The API " +
			"refuses calls with other names, so that no web page can reach it by DNS rebinding. One of them may be " +
			"the whole address at which browsers reach the dashboard, such as that of a proxy: `tdf open` and `tdf " +
			"login` print it. Without one, they print the address of `listen`, with the first name.",
	},
	{
		"http", "trusted_proxies", "", networks(func(s *settings) *[]netip.Prefix { return &s.http.Proxies }),
		"The proxies in front of the API. Only from these addresses, the API takes the client's address from the " +
			"header `Forwarded` or `X-Forwarded-For`. It bounds the tries to log in, and the calls at the same time, " +
			"of each client's address.",
	},
	{
		"http", "tls_cert", "", text(func(s *settings) *string { return &s.http.TLSCert }),
		"A PEM file with the certificate of the API, and with the certificates of its issuers. Empty means no TLS. " +
			"Requires `tls_key`.",
	},
	{
		"http", "tls_key", "", text(func(s *settings) *string { return &s.http.TLSKey }),
		"A PEM file with the private key of the certificate. Requires `tls_cert`.",
	},
	{
		"http", "client_ca", "", text(func(s *settings) *string { return &s.http.ClientCA }),
		"A PEM file with certificate authorities. A client with a certificate of one of them needs no token: the " +
			"name of a token is the common name (CN) of the certificate, and the client may do what that token may. " +
			"Requires `tls_cert`.",
	},
	{
		"http", "blobs", "", text(func(s *settings) *string { return &s.http.Blobs }),
		"The directory in which the API keeps [blobs](blobs.md): files and values that are too large for Redis. Clients " +
			"on this machine, or with the same shared disk, read and write them there. Empty means that there are none.",
	},
	{
		"http", "users", "", text(func(s *settings) *string { return &s.http.Users }),
		"The file of the users who may log in to the dashboard with a password. `tdf user add` writes it. Only its " +
			"owner may be able to read it. Empty means that people log in with tokens.",
	},
	{
		"http", "insecure", "False", truth(func(s *settings) *bool { return &s.http.Insecure }),
		"Allow an address that is not a loopback address without TLS, for example behind a proxy that has TLS. " +
			"Everyone between the client and the API can then read and use the tokens.",
	},
	{
		"http", "taskmaster", "", prefix(func(s *settings) *string { return &s.http.Taskmaster }),
		"Where the paths of the [Taskmaster interface](taskmaster.md) begin. With `/`, they are those of Taskmaster " +
			"itself. Empty means that the API does not serve it.",
	},
	{
		"http", "taskstore", "", prefix(func(s *settings) *string { return &s.http.TaskStore }),
		"Where the paths of the TaskStore interface begin. Empty means that the API does not serve it.",
	},
	{
		"http", "skuld", "", prefix(func(s *settings) *string { return &s.http.Skuld }),
		"Where the paths of the Skuld interface begin. Empty means that the API does not serve it.",
	},
	{
		"http", "taskmaster_stale", "30", duration(aboveZero, func(s *settings) *time.Duration {
			return &s.http.TaskmasterStale
		}),
		"The time without a heartbeat after which a worker of the Taskmaster interface is stale.",
	},
	{
		"http", "taskmaster_dead", "120", duration(aboveZero, func(s *settings) *time.Duration {
			return &s.http.TaskmasterDead
		}),
		"The time without a heartbeat after which a worker of the Taskmaster interface is dead, and its running " +
			"tasks are lost: from 1 to 300. It is the lease of these workers, so a grace period after an outage is " +
			"at least as long.",
	},
}
