// Package sweep turns rows of parameters into inputs of tasks (docs/tdf.md, "Sweeps").
//
// [CSV], [JSONL] and [Grid] yield one row at a time, so a sweep of a million rows needs little memory.
// A [Template] makes the task's input from a row. Each value stays within one word of the
// input, whatever characters it contains. The task's meta holds the parameters as JSON ([Row.JSON]). [PointOf] finds
// the point of an existing task from its meta.
package sweep
