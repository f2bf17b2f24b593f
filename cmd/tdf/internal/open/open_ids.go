package open

import (
	"bufio"
	"fmt"
	"io"

	"github.com/tdf-framework/tdf/manager"
)

// idRanges holds the ids of opened tasks as ranges. Ranges need little memory: there may be 10 million ids, and most of
// them are consecutive.
type idRanges []idRange

type idRange struct{ first, last int64 }

// add adds ids in ascending order.
func (r *idRanges) add(ids []int64) {
	for _, id := range ids {
		if n := len(*r); n > 0 && (*r)[n-1].last == id-1 {
			(*r)[n-1].last = id
		} else {
			*r = append(*r, idRange{id, id})
		}
	}
}

func (r idRanges) count() int64 {
	n := int64(0)
	for _, ids := range r {
		n += ids.last - ids.first + 1
	}
	return n
}

// print writes the ranges in the form that other commands accept: 7, or 7-1006, with the namespace if there are
// several.
func (r idRanges) print(w io.Writer, namespace string) error {
	b := bufio.NewWriter(w)
	for _, ids := range r {
		name := manager.TaskName(namespace, ids.first)
		if ids.first == ids.last {
			fmt.Fprintln(b, name)
		} else {
			fmt.Fprintf(b, "%s-%d\n", name, ids.last)
		}
	}
	return b.Flush()
}
