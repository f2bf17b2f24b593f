// Package worker claims tasks, runs them, and reports how they ended.
//
// [Load] or [New] makes a [Worker], and [Worker.Run] runs it until its context ends. A worker runs rounds in one of two
// ways:
//
//   - By default it fetches the task's program and runs the program's run.sh, as the command tdf-worker does
//     (docs/programs.md).
//   - With [Handle], functions of this process run the rounds: one function for each program. [WithRunner] is the
//     more general option. Package workertest tests handlers without Redis.
//
// A worker renews a lease on each task that it holds. If it loses the lease, or if the task is cancelled, the round's
// context ends, and the result is dropped. Each report names the claim, so a late report changes nothing
// (docs/guarantees.md).
package worker
