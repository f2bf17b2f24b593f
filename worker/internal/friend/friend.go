// Package friend has the functions that only the packages worker and workertest may call. Programs that use TDF must
// not call them.
package friend

import "context"

// RunInProcess runs a round like a worker that runs rounds in its own process. The argument runner is a worker.Runner,
// round is a *worker.Round without a directory, and dir is the round's directory. The result ended is a worker.Ended.
// Package worker sets this variable.
var RunInProcess func(ctx context.Context, runner, round any, dir string) (ended any, err error)

// AppendLine appends a line to a text. If the text does not end with a newline, AppendLine inserts one before the line.
// If the line is empty, AppendLine returns the text unchanged.
func AppendLine(text, line string) string {
	if text != "" && line != "" && text[len(text)-1] != '\n' {
		text += "\n"
	}
	return text + line
}
