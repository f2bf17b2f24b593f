// Package managertest tests a manager's callbacks without processes and without waiting.
//
// The test defines the results of programs. A [Tester] runs the tasks on an embedded Redis, with the scripts and the
// server of production. The test's clock begins at 2030-01-01 and stands still. When Run waits, the clock jumps to the
// next event. So a manager that waits for days can be tested in milliseconds (docs/testing.md).
//
// The number of workers has no limit: each open task runs as soon as its StartAfter has passed and nothing else keeps
// it from running. Each round of a task runs on another worker. Results arrive in the order in which programs end.
// Results of the same moment arrive in the order of the task ids. While no event happens, Run makes fewer rounds than
// in production.
package managertest
