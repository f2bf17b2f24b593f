// Package rules says which states a task goes through, and what the server decides about a task at a given time
// (docs/lifecycle.md). All functions are pure: they do no I/O and read no clock. Package redisstate carries out the
// decisions in Redis.
//
//   - [Transitions] is the table of permitted state changes, and [Upkeeps] the table of all other changes.
//   - [Move] is one transition of one task, ready to be carried out. Functions such as [Settle], [Execute] and [Cancel]
//     return Moves. A Move changes nothing if the task has left the state and round that it starts from.
//   - [Placement] is a task together with the lists that hold its id. [Placement.Repair] finds and repairs
//     inconsistencies.
package rules
