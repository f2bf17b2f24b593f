package broker

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
)

// ErrTooMany means that a round opens too many tasks.
var ErrTooMany = task.NewError(task.CodeInvalid,
	fmt.Sprintf("more than %d tasks are too many for one round: let some of them open the others", task.MaxFollowing))

// A Following is a task that a round opens (docs/lifecycle.md, "Tasks that open tasks").
type Following struct {
	task.Definition
	From string // where the round has defined it, for errors
}

// Numbered returns definitions as the tasks that a round opens. The text from describes a definition, with a verb for
// its number.
func Numbered(from string, definitions []task.Definition) []Following {
	all := make([]Following, len(definitions))
	for i, d := range definitions {
		all[i] = Following{d, fmt.Sprintf(from, i+1)}
	}
	return all
}

// ParseLines adds the definitions of the file open.jsonl.
func ParseLines(all []Following, openFile string) ([]Following, error) {
	number := 0
	for line := range strings.Lines(openFile) {
		number++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		f := Following{From: fmt.Sprintf("open.jsonl, line %d", number)}
		if err := json.Unmarshal([]byte(line), &f.Definition); err != nil {
			return nil, fmt.Errorf("%s: %w", f.From, err)
		}
		if all = append(all, f); len(all) > task.MaxFollowing {
			return nil, fmt.Errorf("%s: %w", f.From, ErrTooMany)
		}
	}
	return all, nil
}

// Properties returns the properties of the tasks that a round of t opens. The task t must have all of its properties.
// The error says which definition is invalid, and why.
func Properties(t *task.Task, all []Following) ([]task.Properties, error) {
	if len(all) > task.MaxFollowing {
		return nil, ErrTooMany
	}
	open := make([]task.Properties, len(all))
	for i := range all {
		var err error
		if open[i], err = t.Follow(&all[i].Definition); err != nil {
			return nil, fmt.Errorf("%s: %w", all[i].From, err)
		}
	}
	_, err := task.InOrder(open)
	return open, err
}
