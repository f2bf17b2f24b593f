// Package server settles due tasks: it applies the rules of package tdf, and the store carries out the decisions.
// Several servers may run at once, and a killed server does no harm, because all state is in Redis.
//
// A server works in rounds of its own. In each of them, it settles the due tasks, sends a heartbeat, and audits a page
// of tasks. The audit finds tasks that components of the original TDF, or edits by hand, left inconsistent.
package server
