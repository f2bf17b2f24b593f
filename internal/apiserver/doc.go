// Package apiserver serves the HTTP API (package web) on the address of section [http] of a configuration. It does so
// for tdf-server, tdf serve and tdf up.
//
// A connection passes the bounds of this package before package web checks its calls: TLS, the number of connections,
// and the time that a client may need to send a header.
package apiserver
