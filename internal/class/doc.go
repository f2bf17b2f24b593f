// Package class decides which worker may claim which task. A worker has an [Offer], and a task has a [Requirement].
// [Serves] is the only place where this rule is written in Go; a new rule is one line of its table. The package does no
// I/O and knows no tasks (docs/lifecycle.md, "Queues"; docs/resources.md).
package class
