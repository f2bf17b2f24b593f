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
//
// # Inside
//
// A running worker is a supervisor (supervisor.go): its slots, a loop that renews the leases (lease.go), and a loop
// that reports ended rounds (report.go). A claim is an execution (execution.go). Its Runner runs the round: in this
// process (runner.go, handler.go), or as a program (script.go). For a program, the worker
//
//   - fetches it (program.go, package fetch),
//   - starts run.sh (launch.go, shebang.go, environment.go), and
//   - limits, measures and ends its processes (package process).
//
// The round and the worker exchange data through files (roundio.go; packages record, rounddir and secrets). The worker
// collects them when the round has ended (collect.go).
//
// Other files contain the parts that belong to the worker, not to a round: its name and its heartbeats (heartbeat.go,
// identity_linux.go), circuit breakers for programs that keep failing (breaker.go, successes.go), draining and stopping
// (drain.go, stop.go), and the removal of old files (rounddirs.go, upkeep.go, package retention).
//
// An execution ends in one of these ways:
//
//   - executed: the program ended, or could not be run.
//   - timed out: the program ran for too long.
//   - released: the worker stops, this host cannot run the task, or the handler put it off.
//   - dropped: the task no longer belongs to this worker.
package worker
