// Package redistest starts real Redis servers for tests (docs/development.md). A test can start its own server, which
// it can kill and restart, or use the server that all tests of the process share. A proxy can drop replies, and delay
// or cut connections.
//
// Commands that measure TDF use [Command].
//
// A server ends with the test process, even if the test process is killed. If redis-server is missing or too old, tests
// fail with an error that says how to install it.
package redistest
