// Package tdf has the words that the managers and the handlers of the Task Distribution Framework share: the states of
// a task, its [Definition], the [Kind] of typed tasks, the [FailOn] rules, limits and pauses, and the errors with their
// [Code].
//
// A program that opens tasks and reads their results imports package manager too, and a program whose functions run
// tasks imports package worker. Package program stores programs in Redis, package sweep turns rows of parameters into
// tasks, and package trial runs all of TDF in one process for a first try. docs/tutorial.md begins with an example.
package tdf
