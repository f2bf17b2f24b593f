package results

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
)

// maxListed is the maximum length of the list of columns in an error, in bytes.
const maxListed = 2000

// choose returns the columns of Options.Columns, or all columns if it is empty. A column that exists only for some
// tasks can always be chosen, so that a script does not depend on the tasks.
func choose(all, columns []string) ([]string, error) {
	if len(columns) == 0 {
		return all, nil
	}
	for _, name := range columns {
		if !slices.Contains(all, name) && !slices.Contains(oddColumns, name) {
			return nil, invalid("unknown column %q; the columns are %s", name, listed(all))
		}
	}
	return columns, nil
}

// checkRepeats returns an error if a column was chosen twice.
func checkRepeats(columns []string) error {
	for i, name := range columns {
		if slices.Contains(columns[:i], name) {
			return invalid("column %q is named twice", name)
		}
	}
	return nil
}

func invalid(text string, args ...any) error {
	return task.NewError(task.CodeInvalid, fmt.Sprintf("choose columns: "+text, args...))
}

func listed(names []string) string {
	text := strings.Join(names, ", ")
	if len(text) > maxListed {
		text = strings.ToValidUTF8(text[:maxListed], "") + "…"
	}
	return text
}
