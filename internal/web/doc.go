// Package web serves the HTTP API of a namespace (docs/http.md). It has no rules of its own about tasks: it checks who
// calls, and passes the calls on to packages manager and admin.
//
// A call passes the gate (gate.go), which checks the host, the origin, the limits and the token. The table of routes
// (routes.go) says which right a call needs. The other files have the functions behind the routes, and problems.go has
// the answers to calls that fail.
package web
