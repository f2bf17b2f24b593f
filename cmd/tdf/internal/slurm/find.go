package slurm

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/manager"
)

// A ref names a job, as 17, 17_3 or 17_[1-4,7].
type ref struct {
	id      int64
	indexes []int64 // nil for all elements of an array
}

func (r ref) String() string {
	if r.indexes == nil {
		return strconv.FormatInt(r.id, 10)
	}
	return fmt.Sprintf("%d_[%s]", r.id, ranges(r.indexes))
}

// parseRefs reads a list of jobs, with commas between them.
func parseRefs(list string) (refs []ref, err error) {
	inside := false
	split := func(c rune) bool {
		inside = c == '[' || inside && c != ']'
		return c == ',' && !inside
	}
	for _, name := range strings.FieldsFunc(list, split) {
		number, elements, isElement := strings.Cut(name, "_")
		r := ref{}
		r.id, err = strconv.ParseInt(number, 10, 64)
		if err != nil || r.id < 1 {
			return nil, fmt.Errorf("invalid job id %s", name)
		}
		if isElement {
			a, err := parseArray(strings.TrimSuffix(strings.TrimPrefix(elements, "["), "]"))
			if err != nil {
				return nil, fmt.Errorf("invalid job id %s", name)
			}
			r.indexes = a.indexes
		}
		refs = append(refs, r)
	}
	if len(refs) == 0 {
		return nil, fmt.Errorf("invalid job id %s", list)
	}
	return refs, nil
}

// resolve returns the tasks of jobs, in the order of the refs, and the refs of jobs that do not exist.
func resolve(ctx context.Context, m *cli.Client, refs []ref) (found []*view, unknown []ref, err error) {
	for _, r := range refs {
		jobs, err := resolveOne(ctx, m, r)
		if err != nil {
			return nil, nil, err
		}
		if len(jobs) == 0 {
			unknown = append(unknown, r)
		}
		found = append(found, jobs...)
	}
	return found, unknown, nil
}

func resolveOne(ctx context.Context, m *cli.Client, r ref) (found []*view, err error) {
	q := manager.Query{IDs: []int64{r.id}}
	found, err = list(ctx, m, q)
	switch {
	case err != nil || len(found) == 0:
		return nil, err
	case found[0].Index == nil || found[0].arrayJob() != r.id: // a job, or an element by its own id
		if r.indexes != nil {
			return nil, nil
		}
		return found, nil
	}
	q = manager.Query{Group: found[0].t.Group, Order: manager.ByID}
	found, err = list(ctx, m, q)
	return slices.DeleteFunc(found, func(v *view) bool {
		if v.Index == nil {
			return true
		}
		_, named := slices.BinarySearch(r.indexes, *v.Index)
		return r.indexes != nil && !named
	}), err
}

// list returns the jobs of a query.
func list(ctx context.Context, m *cli.Client, q manager.Query) (found []*view, err error) {
	for t, err := range m.List(ctx, q) {
		if err != nil {
			return nil, err
		}
		v := newView(t)
		if v != nil {
			found = append(found, v)
		}
	}
	return found, nil
}
