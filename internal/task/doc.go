// Package task says what a task is, which states a task goes through, and what the server decides about a task at a
// given time. docs/lifecycle.md describes these rules for users. Package tdf has the part of it that programs name.
//
// All functions are pure: they do no I/O and read no clock. The package redisstate reads tasks from Redis, and carries
// out the decisions in Redis.
//
// The main types are:
//
//   - [Properties] is what a manager sets when it opens a task. [Defaults] fills in the defaults.
//   - [Task] is the whole task: its properties, its state and its rounds. [ParseTask] reads it from a Redis hash.
//   - [Transitions] is the table of permitted state changes, and [Upkeeps] the table of all other changes.
//   - [Move] is one transition of one task, ready to be carried out. Methods of Task such as [Task.Settle],
//     [Task.Execute] and [Task.Cancel] return Moves. A Move changes nothing if the task has left the state and round
//     that it starts from.
//   - [Placement] is a task together with the lists that hold its id. [Placement.Repair] finds and repairs
//     inconsistencies.
//   - [Source] is the parsed address of a program.
package task
