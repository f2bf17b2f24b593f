// Package worker claims tasks, fetches their programs, runs them and reports what they printed.
//
// One claim is one execution ("execution.go"), and everything that belongs to it hangs on that:
// the lease that is renewed for it (lease.go), the program's directory (program.go), the process
// and its group (process.go, launch.go), the two files with what it prints (output.go), the report
// of how it ended (report.go). Worker itself only claims and waits (worker.go, idle.go), says
// that it is alive (presence.go), and knows how it was told to stop (stop.go).
//
// An execution ends in one of four ways: the program ended, or could not be run, and the round is
// executed; it ran for too long, and is timed out; the worker is told to stop, and the task is
// given back; or the task is not this worker's any more, and what it did is dropped. Whatever is
// reported names the claim, so that a report that comes too late changes nothing
// (docs/guarantees.md).
package worker
