package origin

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
)

// elsewhere is a transport that stands for a server on another machine. This server redirects every request.
type elsewhere struct {
	http.RoundTripper
	to string
}

func (e elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Hostname() != "h.example" {
		return e.RoundTripper.RoundTrip(r)
	}
	header := http.Header{"Location": {e.to}}
	return &http.Response{StatusCode: http.StatusFound, Header: header, Body: http.NoBody, Request: r}, nil
}

// A server on another machine cannot redirect a client to services that only this machine can reach.
func TestRedirectToALocalAddress(t *testing.T) {
	requests := 0
	local := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; r.URL.Path == "/local" {
			http.Redirect(w, r, strings.Replace("http://"+r.Host, "127.0.0.1", "localhost", 1), http.StatusFound)
		}
	}))
	defer local.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(local.URL, "http://"), ":")
	for to, refused := range map[string]bool{
		local.URL: true, "http://localhost:" + port: true, "http://[::ffff:127.0.0.1]:" + port: true, "http://0.0.0.0:" + port: true,
		"http://169.254.169.254/latest": true, "http://127.1.2.3:" + port: true,
	} {
		transport := NewTransport(time.Minute)
		defer transport.CloseIdleConnections()
		_, err := Client(elsewhere{transport, to}).Get("http://h.example/run.sh")
		expect.Equal(t, errors.As(Reason(err), new(*RedirectError)), refused, to, requests, "requests")
		expect.Equal(t, requests, 0, to)
	}
	transport := NewTransport(time.Minute)
	defer transport.CloseIdleConnections()
	resp := expect.Result(Client(transport).Get(local.URL + "/local")).Value(t) // the user has named this machine
	resp.Body.Close()
	expect.Equal(t, requests, 2, "requests")
}

// A proxy connects to the servers, and may itself have a local address.
func TestRedirectThroughAProxy(t *testing.T) {
	g := new(guard)
	ctx := context.WithValue(t.Context(), guardKey{}, g)
	expect.Fails(t, refuseLocal(ctx, "tcp", "127.0.0.1:80", nil), "local address 127.0.0.1:80")
	expect.Fails(t, refuseLocal(ctx, "tcp", "odd", nil), "local address odd")
	g.proxied = true
	expect.NoError(t, refuseLocal(ctx, "tcp", "127.0.0.1:80", nil))
	expect.Result(proxyFor((&http.Request{URL: &url.URL{Scheme: "http", Host: "127.0.0.1"}}).WithContext(ctx))).OK(t)
	expect.True(t, !g.proxied, "a request without a proxy counts as one with a proxy")
}

func TestIsLocal(t *testing.T) {
	for ip, want := range map[string]bool{
		"127.0.0.1": true, "::1": true, "169.254.169.254": true, "fe80::1%eth0": true, "0.0.0.0": true, "::": true, "::ffff:127.0.0.1": true,
		"10.0.0.1": false, "192.0.2.1": false, "2001:db8::1": false,
	} {
		expect.Equal(t, isLocal(netip.MustParseAddr(ip)), want, ip)
	}
}
