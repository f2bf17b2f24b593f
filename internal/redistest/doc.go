// Package redistest gives tests a real Redis (docs/development.md): a server for each test that can be killed and
// restarted, a server that all tests of a process share, and a proxy that drops replies and delays or cuts connections.
//
// A server ends with the test process, even if that is killed. If redis-server is missing or too old, tests fail, and
// name what to install.
package redistest
