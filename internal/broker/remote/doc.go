// Package remote lets a worker take part in TDF over the HTTP API, without Redis. Its token gives it far fewer rights
// than Redis's password (docs/remote-workers.md).
//
// Each call is repeated until the server answers, or its context ends, because each may come twice: a registration has
// a key, a claim has a number, and renewals and reports name their claims. So an outage of the API is the same to the
// worker as one of Redis. The worker trusts the server, which chooses the programs that it runs, but bounds all
// answers.
package remote
