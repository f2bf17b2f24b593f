package admin

import (
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf"
)

// originalWorkers names the workers of the original TDF that hold tasks. Such a worker sends no heartbeats. If it cannot fetch the
// program of its task, it dies, and the task runs until its timeout.
func (v *vitals) originalWorkers(d *diagnoses) {
	if len(v.original) == 0 {
		return
	}
	var names []string
	stuck := map[string][]int64{}
	for _, t := range v.original {
		worker := t.Current().Worker
		names = append(names, worker)
		if !tdf.OriginalFetches(t.Source) {
			stuck[worker] = append(stuck[worker], t.ID)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	d.ok("workers", "workers of the original TDF, which send no heartbeats, hold tasks: %s", joinNames(names))
	for _, worker := range names {
		if ids := stuck[worker]; len(ids) > 0 {
			d.problem("workers", Fact{
				Code: FactOriginalWorker, About: worker,
				Text: fmt.Sprintf("%s, a worker of the original TDF, holds %d tasks whose programs it cannot fetch; the first is task %d", worker, len(ids), ids[0]),
				Fix:  fix("run tdf settings original_workers=yes, and requeue the tasks"),
			})
		}
	}
}
