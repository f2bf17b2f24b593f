package web

import "net/http"

// allowOrigin lets a page of a configured origin read the answer. It reports whether the call is a preflight call, by
// which a browser asks what such a page may do. No answer allows credentials, so that a browser never adds the
// certificate of its user.
func (a *api) allowOrigin(h http.Header, r *http.Request) (preflight bool) {
	origin := r.Header.Get("Origin")
	if !a.knowsOrigin(origin) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", "ETag, Retry-After, X-Correlation-Id")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE")
	h.Set("Access-Control-Allow-Headers",
		"Authorization, Content-Type, Idempotency-Key, If-Match, Last-Event-ID, X-Correlation-Id")
	h.Set("Access-Control-Max-Age", "600") // seconds
	return true
}
