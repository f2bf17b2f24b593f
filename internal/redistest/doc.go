// Package redistest gives tests a real Redis: servers of their own that can be killed and
// started again, one server that all tests of a process share, and a proxy that loses
// replies, cuts connections and holds them (docs/development.md).
//
// A server belongs to the test process and never outlives it, however that ends. Nothing
// here skips a test: where redis-server is missing or too old, the test fails and says
// what to install.
package redistest
