// Package wire is what package web and the interfaces of other task systems share: each interface is a list of routes,
// which web serves behind the gate of the API. So an interface checks no tokens, and reads no bodies: web does that for
// each call, with the same tokens, roles, limits of calls, sizes and times, hosts and problem details (docs/http.md,
// "Interfaces of other systems").
package wire
