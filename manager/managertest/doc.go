// Package managertest tests a manager's callbacks without processes and without waiting.
//
// The test says what each program prints. A [Tester] runs the tasks on an embedded Redis, by the same scripts and the same
// server as in production. The test's clock begins at 2030-01-01 and stands still. When Run waits, the clock jumps to the
// next event. So a test of a manager that waits for days takes some milliseconds (docs/manager.md, "Testing").
//
// There is no limit of workers: each open task that is due runs at once, on a worker of its own. Results come in the order
// in which programs end, those of the same moment by id. If nothing happens for a while, Run makes fewer rounds than in
// production.
package managertest
