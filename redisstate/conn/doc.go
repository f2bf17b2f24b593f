// Package conn connects to the Redis of a namespace.
//
// A [Conn] checks the Redis and the namespace before its first call. It repeats a call until Redis has answered, and
// tells an outage, which passes, from a refusal, which does not. A call that must not count twice has a call slot, in
// which Redis keeps its answer (docs/guarantees.md, "Every call may be sent twice"). A [Waker] waits for wake tokens.
package conn
