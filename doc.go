// Package tdf is the rule book of the Task Distribution Framework: what a task is, which
// states it goes through, and what becomes of it at a given time.
//
// Everything here is a pure function of its arguments: no I/O, no clock, no Redis. The
// package redisstate carries out what these rules decide, and carries it out only if the
// task still is where the rule saw it. The table [Transitions] is the only place where it
// is written which state may follow which; docs/lifecycle.md tells it in prose.
package tdf
