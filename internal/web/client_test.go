package web

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// Behind a trusted proxy, the last address that it has not written itself counts. A client cannot choose its address.
func TestClientOfARequest(t *testing.T) {
	a := &api{proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}
	const proxy = "10.0.0.1:9"
	for _, c := range []struct {
		peer, header, value, want string
	}{
		{"192.0.2.9:7", "X-Forwarded-For", "198.51.100.1", "192.0.2.9"}, // no proxy
		{proxy, "", "", "10.0.0.1"},
		{proxy, "X-Forwarded-For", "198.51.100.1", "198.51.100.1"},
		{proxy, "X-Forwarded-For", "1.1.1.1, 198.51.100.1", "198.51.100.1"},
		{proxy, "X-Forwarded-For", "1.1.1.1,198.51.100.1 , 10.2.3.4", "198.51.100.1"},
		{proxy, "X-Forwarded-For", "10.2.3.4", "10.0.0.1"},
		{proxy, "X-Forwarded-For", "198.51.100.1, ", "10.0.0.1"},
		{proxy, "X-Forwarded-For", "198.51.100.1, unknown", "10.0.0.1"},
		{proxy, "X-Forwarded-For", "::ffff:198.51.100.1", "198.51.100.1"},
		{proxy, "X-Forwarded-For", "2001:db8::1", "2001:db8::/64"},
		{proxy, "X-Forwarded-For", "198.51.100.1:4711", "198.51.100.1"},
		{proxy, "X-Forwarded-For", "1.1.1.1," + strings.Repeat("10.0.0.1,", 100_000) + "10.0.0.1", "10.0.0.1"},
		{proxy, "X-Forwarded-For", strings.Repeat("x", 100_000), "10.0.0.1"},
		{"[::ffff:10.0.0.1]:9", "X-Forwarded-For", "198.51.100.1", "198.51.100.1"},
		{"[fd00::1]:9", "Forwarded", `for="[2001:db8::1]:4711";proto=https`, "2001:db8::/64"},
		{proxy, "Forwarded", `for=1.1.1.1, by=10.0.0.1; For=198.51.100.1`, "198.51.100.1"},
		{proxy, "Forwarded", `for=_hidden`, "10.0.0.1"},
		{proxy, "Forwarded", `proto=https`, "10.0.0.1"},
		{"@", "X-Forwarded-For", "198.51.100.1", "@"},
	} {
		r := &http.Request{RemoteAddr: c.peer, Header: http.Header{}}
		if c.header != "" {
			r.Header.Set(c.header, c.value)
		}
		expect.Equal(t, a.clientOf(r), c.want, c.peer, c.value[:min(len(c.value), 60)])
	}
	both := &http.Request{RemoteAddr: proxy, Header: http.Header{"Forwarded": {"for=1.1.1.1"}, "X-Forwarded-For": {"198.51.100.1"}}}
	expect.Equal(t, a.clientOf(both), "10.0.0.1", "the client has written one of the headers")
}
