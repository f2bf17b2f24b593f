package sweep

import (
	"errors"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/task"
)

// ParseParams reads parameters from a JSON object.
func ParseParams(text []byte) ([]Param, error) { return parseObject(text) }

// Changing returns a function that returns the changes of a task, with new values of some of its parameters. It makes
// the input of the task again. If the template is nil, the present input must be the task's parameters in their order,
// as [Row.Words] makes it.
func Changing(c tdf.Changes, values []Param, template *Template) func(*task.Task) (tdf.Changes, error) {
	return func(t *task.Task) (tdf.Changes, error) {
		row, err := withValues(t, values, template == nil && !t.CallsFunction())
		if err != nil {
			return c, task.NewError(tdf.CodeInvalid, err.Error())
		}
		of, err := row.Candidate(t.Properties, template)
		if wrong := (*RowError)(nil); errors.As(err, &wrong) { // a task is no row of a file
			err = task.NewError(tdf.CodeInvalid, wrong.Err.Error())
		}
		c.Meta, c.Input = &of.Task.Meta, &of.Task.Input
		return c, err
	}
}

var errNoTemplate = errors.New("its input is not its parameters in their order, " +
	"so a template of the new input is needed, such as --rate {rate}")

// withValues returns the parameters of a task with new values. If asWords is true, the input of the task must consist
// of them.
func withValues(t *task.Task, values []Param, asWords bool) (row Row, err error) {
	row.Params, err = parseObject([]byte(t.Meta))
	if err != nil {
		return row, errors.New("it has no parameters: its meta is not a JSON object")
	}
	if asWords {
		if words, err := row.Words(); err != nil || words != t.Input {
			return row, errNoTemplate
		}
	}
	for _, v := range values {
		i := row.index(v.Name)
		if i < 0 {
			return row, errors.New("no parameter " + v.Name + "; the parameters are " + strings.Join(row.names(), ", "))
		}
		row.Params[i] = v
	}
	return row, nil
}
