package origin

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

// NewTransport returns a transport for [Client]. After a redirect from another machine, it connects to no loopback or
// link-local address: otherwise, the other machine could use this machine to reach services that trust this machine. If
// the environment names a proxy, the proxy connects instead, and nothing is refused. The transport neither asks for
// compression nor removes it. The timeout applies to the connection, and again to its TLS handshake.
func NewTransport(timeout time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: timeout, ControlContext: refuseLocal}
	return &http.Transport{
		Proxy: proxyFor, DialContext: dialer.DialContext, TLSHandshakeTimeout: timeout, DisableCompression: true,
		ForceAttemptHTTP2: true,
	}
}

// A guard in the context of a request means that another machine has redirected the request.
type guard struct{ proxied bool }

type guardKey struct{}

// guarded returns a request with a guard if another machine has redirected it.
func guarded(req *http.Request) *http.Request {
	if req.Response == nil || req.Response.Request == nil {
		return req
	}
	from := req.Response.Request.URL.Hostname()
	if ip, err := netip.ParseAddr(from); from == req.URL.Hostname() || from == "localhost" || err == nil &&
		isLocal(ip) {
		return req
	}
	return req.WithContext(context.WithValue(req.Context(), guardKey{}, new(guard)))
}

func isLocal(ip netip.Addr) bool {
	ip = ip.Unmap()
	return ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified()
}

func proxyFor(req *http.Request) (*url.URL, error) {
	proxy, err := http.ProxyFromEnvironment(req)
	if g, redirected := req.Context().Value(guardKey{}).(*guard); redirected {
		g.proxied = proxy != nil
	}
	return proxy, err
}

// refuseLocal refuses a connection that [NewTransport] must not make. It gets the address to which the name of the host
// was resolved.
func refuseLocal(ctx context.Context, _, address string, _ syscall.RawConn) error {
	g, redirected := ctx.Value(guardKey{}).(*guard)
	if !redirected || g.proxied {
		return nil
	}
	if at, err := netip.ParseAddrPort(address); err == nil && !isLocal(at.Addr()) {
		return nil
	}
	return refuse("redirected from another machine to the local address %s", address)
}
