package counts

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// A rotation remembers what was counted of each queue, for a caller that counts again and again. The zero value
// remembers nothing.
type rotation[T any] struct {
	mu   sync.Mutex
	last map[string]T // by the name of the queue; nil before the first count
	next string       // the name with which the next part begins
}

// othersAtOnce is the size of the part of a turn that has not the busiest queues.
const othersAtOnce = 350

// turn returns the names to count now, and the name with which the next part begins. These names are the busiest ones,
// and a part of the others among all names, which are in the order of their bytes. So each name has its turn. Before
// the first count, turn returns all names.
func (r *rotation[T]) turn(busiest, all []string, sizeOf func(name string) int) (turn []string, next string) {
	if r.last == nil {
		return all, ""
	}
	has := map[string]bool{}
	for _, name := range busiest {
		has[name] = true
	}
	turn = slices.Collect(maps.Keys(has))
	part := othersAtOnce
	begin, _ := slices.BinarySearch(all, r.next)
	for i := range all {
		name := all[(begin+i)%len(all)]
		if part <= 0 {
			return turn, name
		}
		if !has[name] {
			turn = append(turn, name)
			part -= sizeOf(name)
		}
	}
	return turn, ""
}

// Busiest divides queues into those with the highest loads, at most the given number, the highest first, and all
// others. Of equal loads, those of the first queues count as higher.
func Busiest[Q any](queues []Q, most int, loadOf func(*Q) [2]int64) (busiest, others []Q) {
	type load struct {
		of [2]int64
		i  int
	}
	loads := make([]load, len(queues)) // computed once, because the order needs each of them many times
	for i := range queues {
		loads[i] = load{loadOf(&queues[i]), i}
	}
	slices.SortFunc(loads, func(a, b load) int {
		return cmp.Or(cmp.Compare(b.of[0], a.of[0]), cmp.Compare(b.of[1], a.of[1]), cmp.Compare(a.i, b.i))
	})
	sorted := make([]Q, len(queues))
	for i, of := range loads {
		sorted[i] = queues[of.i]
	}
	most = min(most, len(sorted))
	return sorted[:most:most], sorted[most:]
}
