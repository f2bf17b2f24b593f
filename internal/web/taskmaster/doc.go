// Package taskmaster serves the interface of Taskmaster: its tasks are TDF's tasks, so the server settles them, and
// every tool of TDF shows them (docs/taskmaster.md).
//
// All state is in Redis, so any process can serve any call. The workers are sessions of package broker: each of
// them is one session for ever, whose id follows from the worker's id. Lost tasks and deadlines are the server's
// business: a worker's lease is the time after which it is dead, and the deadline of a task is its claim_before.
package taskmaster
