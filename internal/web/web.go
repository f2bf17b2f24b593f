package web

import (
	"cmp"
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/blob"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web/dashboard"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/manager"
)

// Options configure the handler of the HTTP API. Every field may be zero.
type Options struct {
	// Hosts are the names under which clients may call the API, without ports. The name localhost and all IP addresses
	// are always possible. A call with another name in its header Host is refused, so that no web page can reach the
	// API under a name of its own.
	Hosts []string

	// Proxies are the addresses whose headers Forwarded and X-Forwarded-For name the client of a call.
	Proxies []netip.Prefix

	// AtOnce is how many calls the handler works on at the same time. A token, and the calls of an address without one,
	// may have as many as they leave for others. Default: 1,000.
	AtOnce int

	// Streams is how many answers may go on at the same time: events, followed outputs, and lists as JSON Lines. A
	// token may have as many as it leaves for others. Default: 1,000.
	Streams int

	// Waiting is how many calls of idle workers may wait for tasks at the same time. A token may have as many as it
	// leaves for others. Default: 20,000.
	Waiting int

	// Memory is how many bytes all calls may make this process hold, from the first byte of each call to the last byte of
	// its answer. A token may have as many as it leaves for others. Default: 512 MiB.
	Memory int64

	// Timeout is how long a call may take. Calls for many tasks may take ten times as long. If Redis does not answer in
	// this time, the status is 503. Default: 5 s.
	Timeout time.Duration

	// Interfaces are those of other task systems, which the handler serves beside the API (docs/http.md, "Interfaces of
	// other systems"). Default: none.
	Interfaces []wire.Interface

	// Log receives a line for each call. Default: no log.
	Log *slog.Logger

	// Users is the path of the file of the users who may log in to the dashboard with a password (docs/dashboard.md).
	// Without it, they need tokens.
	Users string

	// Blobs is the directory of the namespace's blobs. Default: there are no blobs.
	Blobs *blob.Dir

	// Shards are managers of further namespaces, which work as one with that of the API. The dashboard shows all of them
	// (docs/shards.md).
	Shards []*manager.Manager

	// Public is the origin at which browsers reach the dashboard, such as https://tdf.example.org, if it is known.
	Public string

	// CertificateEnds is the end of the certificate with which the API is served; zero without TLS.
	CertificateEnds time.Time

	// Version is the release that the OpenAPI document names.
	Version string
}

// An api is the handler of the HTTP API.
type api struct {
	Options
	manager  *manager.Manager
	admin    *admin.Admin
	defaults task.Properties // of new tasks
	broker   *broker.Broker
	huma     huma.API
	mux      *wire.Mux
	panel    *dashboard.Dashboard
	routes   []route
	names    map[string]bool // Options.Hosts, and localhost
	proxies  []netip.Prefix

	logins     *limiter   // tries to log in to the dashboard, by address
	places     *pool.Pool // of calls, by token, and by address before the token is known
	probes     *pool.Pool // of calls of /readyz, by address
	memory     *pool.Pool // bytes that all calls make this process hold, by token
	shares     blobShares // of blobs, by token
	waiting    *pool.Pool // of calls that wait for tasks, by token
	streams    *pool.Pool // by token
	events     *eventHub
	roster     roster
	checks     checks
	checkPause time.Duration    // how often the token or the session of a stream is checked
	clock      func() time.Time // of the limiter
	within     func(context.Context, time.Duration) (context.Context, context.CancelFunc)

	mu       sync.Mutex
	readers  map[[sha256.Size]byte]access.Token // who has read the metrics, by the digest of what it has sent
	managers map[string]*manager.Manager        // by the name that they write into the logs of tasks
	servers  map[*http.Server]context.Context   // end when the servers shut down
}

// Defaults of Options.
const (
	usualAtOnce  = 1000
	usualStreams = 1000
	usualWaiting = 20_000
	usualMemory  = 512 << 20
)

// New returns the handler of the HTTP API of a manager's namespace. New tasks get the manager's TaskDefaults. Every
// call below /api/ needs a token (docs/tdf.md, "Tokens").
func New(m *manager.Manager, o Options) http.Handler { return newAPI(m, o) }

func newAPI(m *manager.Manager, o Options) *api {
	o.AtOnce, o.Streams = cmp.Or(o.AtOnce, usualAtOnce), cmp.Or(o.Streams, usualStreams)
	o.Waiting = cmp.Or(o.Waiting, usualWaiting)
	o.Memory = cmp.Or(o.Memory, usualMemory)
	o.Timeout, o.Version = cmp.Or(o.Timeout, 5*time.Second), cmp.Or(o.Version, "development")
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	parts := managing.Of(m)
	a := &api{
		Options: o, manager: m, defaults: parts.Config.TaskDefaults, admin: admin.New(m), mux: &wire.Mux{},
		names:  map[string]bool{"localhost": true},
		logins: &limiter{free: map[string]time.Time{}},
		places: pool.New(int64(o.AtOnce)), probes: pool.New(maxProbes), memory: pool.New(o.Memory),
		streams: pool.New(int64(o.Streams)), checkPause: checkPause, clock: time.Now,
		readers:  map[[sha256.Size]byte]access.Token{},
		within:   context.WithTimeout,
		managers: map[string]*manager.Manager{}, broker: broker.New(parts.Store, broker.Options{
			Answer: o.Timeout,
			Log:    o.Log,
		}), waiting: pool.New(int64(o.Waiting)),
		servers: map[*http.Server]context.Context{}, proxies: o.Proxies,
	}
	a.events = newEventHub(a)
	for _, name := range o.Hosts {
		a.names[strings.ToLower(name)] = true
	}
	a.addRoutes()
	a.addPages()
	a.addInterfaces()
	a.addDashboard()
	return a
}
