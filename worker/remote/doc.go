// Package remote serves workers in other processes, which reach Redis only through calls of a [Desk] (docs/http.md,
// "Workers"). Package web passes their HTTP calls on to it.
//
// All state is in Redis: the name, the offer and the lease of a worker are in the worker's hash, as for every other
// worker. So any process can serve any call. A session (session.go) is one start of a worker. A claim id contains a
// digest of the session, so that a Desk recognizes the claims of a worker without asking Redis. Idle workers of one
// offer share a waiter (lobby.go), which takes wake tokens for all of them. What a report means is in package broker,
// as for workers that run rounds themselves.
package remote
