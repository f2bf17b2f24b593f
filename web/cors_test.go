package web

import (
	"net/http"
	"testing"

	"github.com/tdf-framework/tdf/access"
	"github.com/tdf-framework/tdf/internal/expect"
)

// Only pages of the configured origins may call the API from a browser, and only with a token.
func TestCORS(t *testing.T) {
	s := newSite(t, Options{Origins: []string{"https://Lab.example", "http://localhost:3000"}})
	const ask = "Access-Control-Request-Method: POST"
	for origin, known := range map[string]bool{
		"https://lab.example": true, "http://localhost:3000": true, "https://LAB.example": true,
		"http://lab.example": false, "https://lab.example:444": false, "https://a.lab.example": false, "https://lab.example.evil": false, "null": false, "*": false, "": false,
	} {
		got := s.call("", "OPTIONS", "/api/v1/tasks", "", "Origin: "+origin, ask)
		allowed := got.Header.Get("Access-Control-Allow-Origin")
		expect.Equal(t, got.StatusCode == 204, known, "a preflight call of", origin)
		expect.Equal(t, allowed == origin, known || origin == "", "a preflight call of", origin)
		expect.Equal(t, got.Header.Get("Access-Control-Allow-Credentials"), "", "a preflight call of", origin)
		if origin == "" {
			continue
		}
		got = s.call(s.tokens[access.Operator], "POST", "/api/v1/tasks", plain, "Origin: "+origin)
		expect.Equal(t, got.StatusCode == 201, known, "a call of", origin)
		if !known {
			expect.Equal(t, got.StatusCode, 403, "a call of", origin)
		}
		expect.Equal(t, got.Header.Get("Access-Control-Allow-Origin") == origin, known, "a call of", origin)
	}
	got := s.call("", "POST", "/api/v1/tasks", plain, "Origin: https://lab.example")
	expect.Equal(t, got.StatusCode, 401)
	expect.NotEqual(t, got.Header.Get("Access-Control-Allow-Origin"), "")
	expect.Equal(t, got.Header.Get("Vary"), "Origin")
	expect.Equal(t, s.call("", "OPTIONS", "/api/v1/tasks", "", "Origin: https://lab.example").StatusCode, http.StatusUnauthorized, "OPTIONS without the question of a preflight call")
}
