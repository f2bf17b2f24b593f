// Package sweep makes inputs of tasks out of rows of parameters (docs/tdf.md, "Sweeps").
//
// Rows come from [CSV], [JSONL] or a [Grid], one after the other: a million of them need no more memory than
// one. A [Template] becomes the input of each row's task; every value stays one word of it, whatever it
// holds. The parameters themselves are kept as the task's meta, [Row.JSON], by which [PointOf] knows later
// which points there are.
package sweep
