// Package task says what a task is: its properties, its state, and how Redis stores it. docs/lifecycle.md describes
// this for users. Package tdf has the part of it that programs name, and package rules decides what happens to a task.
//
// All functions are pure: they do no I/O and read no clock. The main types are:
//
//   - [Properties] is what a manager sets when it opens a task. [Defaults] fills in the defaults.
//   - [Task] is the whole task: its properties, its state and its rounds. [ParseTask] reads it from a Redis hash.
//   - [Source] is the parsed address of a program.
package task
