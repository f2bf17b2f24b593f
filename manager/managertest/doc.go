// Package managertest tests a manager's callbacks without Redis, processes or clock.
//
// The test says what each program prints; the package takes the tasks through their lives by
// the rules of package tdf, as server and workers would, on a clock of its own that jumps to
// the next thing that happens. So a test of a manager that waits for days takes no time, and
// gives the same each time (docs/manager.md, "Testing").
//
// There is no end of workers: whatever is open and due runs at once, and results come in the
// order in which programs end, those of the same moment by id.
package managertest
