package web

import (
	"net/http"
	"net/netip"
	"strings"
)

// mostProxies is how many proxies a request may pass.
const mostProxies = 16

// clientOf returns the key of the address of a request's client (see [AddressOf]). If a trusted proxy sent the request,
// it is the last address in the header Forwarded or X-Forwarded-For that belongs to no trusted proxy: the client may
// have written the addresses before it. If a request has both headers, the proxy has written only one of them, so the
// proxy's own address counts (docs/http.md, "Behind a proxy").
func (a *api) clientOf(r *http.Request) string {
	peer := AddressOf(r.RemoteAddr)
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !a.isProxy(at.Addr()) {
		return peer
	}
	forwarded, plain := r.Header.Values("Forwarded"), r.Header.Values("X-Forwarded-For")
	if len(forwarded) > 0 && len(plain) > 0 {
		return peer
	}
	rest := strings.Join(append(forwarded, plain...), ",")
	for range mostProxies {
		i := strings.LastIndexByte(rest, ',')
		ip, ok := forwardedFor(rest[i+1:])
		switch {
		case !ok:
			return peer
		case !a.isProxy(ip):
			return keyOf(ip)
		case i < 0:
			return peer
		}
		rest = rest[:i]
	}
	return peer
}

func (a *api) isProxy(ip netip.Addr) bool {
	for _, p := range a.proxies {
		if p.Contains(ip.Unmap()) {
			return true
		}
	}
	return false
}

// forwardedFor reads an element of X-Forwarded-For, such as 192.0.2.1, or of Forwarded, such as
// for="[2001:db8::1]:4711";proto=https.
func forwardedFor(element string) (ip netip.Addr, ok bool) {
	node := strings.TrimSpace(element)
	if strings.Contains(node, "=") {
		node = ""
		for pair := range strings.SplitSeq(element, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
			if strings.EqualFold(name, "for") {
				node = strings.Trim(value, `"`)
			}
		}
	}
	if at, err := netip.ParseAddrPort(node); err == nil {
		return at.Addr(), true
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(node, "["), "]"))
	return ip, err == nil
}
