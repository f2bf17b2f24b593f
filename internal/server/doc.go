// Package server settles due tasks. It applies the rules of package tdf, and the store carries out the decisions.
// Several servers may run at once. A killed server does no harm, because all state is in Redis.
//
// A server works in rounds. In each round, the server settles the due tasks, sends a heartbeat, and audits a page of
// tasks. The audit finds tasks that components of the original TDF, or edits by hand, made inconsistent.
package server
