// Package broker is the side of a worker that faces Redis, in one place for all workers: those that run here, those
// over HTTP, and those of other systems' interfaces. It says what the end of a round means for its task (ending.go),
// and delivers the reports (delivery.go).
//
// A [Direct] serves one worker in this process.
//
// A [Broker] serves workers in other processes, which reach Redis only through its calls (docs/http.md, "Workers"). All
// state is in Redis: the name, the offer and the lease of a worker are in the worker's hash, as for every other worker.
// So any process can serve any call. A session (session.go) is one start of a worker. A claim id contains a digest of
// the session, so that a Broker recognizes the claims of a worker without asking Redis. Idle workers of one token and
// offer share a waiter (wait.go), which takes wake tokens for all of them.
package broker
