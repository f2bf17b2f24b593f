// Package worker claims tasks, runs them and reports how they ended.
//
// The command tdf-worker is [New] and [Worker.Run]. A program of one's own sets a [Runner] in between,
// and runs rounds itself: docs/programs.md, "Rounds without a process".
//
// # Inside
//
// A worker at work is a session (session.go): its slots, and two loops that speak for all of them:
// one keeps the leases (lease.go), one reports what has ended (report.go). One claim is one
// execution (execution.go), and everything that belongs to it hangs on that. A Runner (round.go)
// runs its round: the usual one (script.go) has the program fetched (program.go), starts run.sh
// (launch.go) and holds all that it starts (package process). What the round prints and
// reports lies on its desk (desk.go; packages record, rounddir and secrets), and is collected when it
// has ended (collect.go).
//
// A worker has its name for itself, and says that it is alive (presence.go, identity_linux.go); it
// clears up after an earlier one (leftovers.go), pauses programs that do not run here
// (avoid.go, unfit.go), and knows how it was told to stop (stop.go).
//
// An execution ends in one of five ways: the program ended, or could not be run, and the round is
// executed; it ran for too long, and is timed out; the worker is told to stop, or its host cannot
// run it, and the task is given back; or the task is not this worker's any more, and what it did is
// dropped. Whatever is reported names the claim, so that a report that comes too late changes
// nothing (docs/guarantees.md).
package worker
