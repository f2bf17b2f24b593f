// Package sweep turns rows of parameters into inputs of tasks (docs/tdf.md, "Sweeps").
//
// [CSV], [JSONL] and [Grid] yield one row at a time, so a sweep of a million rows needs little memory.
// A [Template] makes the task's input from a row. A value may contain any characters and still stays within one
// word of the input. The task's meta holds the parameters as JSON ([Row.JSON]). [PointOf] reads them from the meta,
// to find the points that already have a task.
package sweep
