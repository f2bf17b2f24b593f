// Package dependencies has the tasks and groups for which tasks wait. Managers check those of new tasks (check.go). The
// server links a task to them (link.go), and tells the dependents of a task or group its end (ending.go). Workers read
// what a task has waited for (after.go), and people and retries of a whole branch read who waits for whom (awaited.go,
// dependents.go).
//
// The scripts of package redisstate begin each wait: they add the task to a set, from which the server takes it.
package dependencies
