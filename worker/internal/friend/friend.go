// Package friend has the functions that only the packages worker and workertest may call. Programs that use TDF must
// not call them.
package friend

import "context"

// RunInProcess runs a round like a worker that runs rounds in its own process. runner is a worker.Runner, round is a
// *worker.Round without a directory, dir is its directory, and ended is a worker.Ended. Package worker sets this variable.
var RunInProcess func(ctx context.Context, runner, round any, dir string) (ended any, err error)

// AppendLine appends a line to a text. The line begins on a line of its own. If it is empty, AppendLine returns the text.
func AppendLine(text, line string) string {
	if text != "" && line != "" && text[len(text)-1] != '\n' {
		text += "\n"
	}
	return text + line
}
