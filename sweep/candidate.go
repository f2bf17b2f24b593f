package sweep

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/task"
)

// A Candidate is a task for one row.
type Candidate struct {
	Task  task.Properties
	Point Point
	Row   Row // for errors
}

// Candidate returns the task for the row: d with the input that the template makes, and with the parameters as its
// meta. If the template is nil, the input has all parameters in their order. A parameter `resources` also sets what the
// task asks for. The error is a *[RowError].
func (r *Row) Candidate(d task.Properties, input *Template) (Candidate, error) {
	if err := r.fill(&d, input); err != nil {
		return Candidate{}, r.Wrong(err)
	}
	return Candidate{d, r.Point(), *r}, nil
}

// fill gives the parameters to a task, and validates it.
func (r *Row) fill(d *task.Properties, input *Template) (err error) {
	d.Meta = r.JSON()
	switch {
	case len(d.Meta) > task.MaxMeta: // so a row with very many parameters need not fill a template
		return fmt.Errorf("the parameters have %d bytes as JSON: want at most %d; put long values into files, and "+
			"use the names of the files as values", len(d.Meta), task.MaxMeta)
	case input != nil:
		d.Input, err = input.Fill(r)
	case d.Input == "" || d.InputEncoding != task.InputBase64: // any bytes are the same for all rows
		d.Input, err = r.Words()
	}
	if err != nil {
		return err
	}
	err = r.setResources(d)
	if err != nil {
		return err
	}
	return d.Validate()
}

// resourcesParam is the name of a parameter that is also what the task of its row asks for.
const resourcesParam = "resources"

// setResources sets what the task asks for, if the row says so.
func (r *Row) setResources(d *task.Properties) error {
	i := r.index(resourcesParam)
	if i < 0 || r.Params[i].Text == "" {
		return nil
	}
	request, err := class.ParseRequest(r.Params[i].Text)
	if err != nil {
		return fmt.Errorf("%s: %w", resourcesParam, err)
	}
	d.Resources = request.String()
	return nil
}

// A Tally counts, for each point, the tasks of a group and the rows of a sweep. If two rows of the sweep have the same
// point, the group must get two tasks for this point.
type Tally map[Point]tallied

type tallied struct {
	has           int32 // number of tasks in the group
	first, second int32 // number of rows in the first and in the second walk
}

// Add counts a task of the group.
func (t Tally) Add(p Point) {
	of := t[p]
	of.has++
	t[p] = of
}

// A Walk counts the rows of one pass through a sweep.
type Walk struct {
	Points   Tally
	Second   bool  // this is the second walk with these Points
	Admitted int64 // rows that need a new task
	Known    int64 // rows whose task the group already has
	Repeated int64 // rows that repeat an earlier row
}

// Admits reports whether a row needs a new task.
func (w *Walk) Admits(point Point) bool {
	t := w.Points[point]
	rows := &t.first
	if w.Second {
		rows = &t.second
	}
	*rows++
	w.Points[point] = t
	if *rows > 1 {
		w.Repeated++
	}
	if *rows <= t.has {
		w.Known++
		return false
	}
	w.Admitted++
	return true
}

// Key makes the task of the row that [Walk.Admits] has just admitted unique in its group: of several extensions of the
// group at the same time, only one opens it. Rows with the same point have different keys.
func (w *Walk) Key(d *task.Properties, point Point) {
	t := w.Points[point]
	number := t.first
	if w.Second {
		number = t.second
	}
	b := binary.BigEndian.AppendUint32(point[:], uint32(number))
	sum := sha256.Sum256(append(b, d.Group...))
	d.Unique, d.UniqueUntil = "sweep:"+hex.EncodeToString(sum[:16]), task.UntilArchived
}
