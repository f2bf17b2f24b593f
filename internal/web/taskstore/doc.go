// Package taskstore is the interface of the system TaskStore: groups of tasks that clients add, claim, change and
// delete, all or nothing, over HTTP (docs/taskstore.md).
//
// Each version of a task is a task of TDF of its own: open, in the queue and of the program taskstore, and found by its
// group. So the id of a version is that of a task of TDF, which is never used again, and grows. A change removes the
// old task and opens the new one in one step of Redis, which requires that all tasks of the call are as they were read.
// That step is the only write, so several processes may serve the interface.
//
// The time from which a task is available is its start_after, and its meta names the owner. A claim is a change to a
// later time and another owner. So nothing has to happen when an ownership ends, and the late owner can still change
// the task, as long as nobody else has.
package taskstore
