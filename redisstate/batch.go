package redisstate

// A bound limits one quantity of a call, such as its bytes. The field most is the limit of the whole call. The function
// of returns the quantity of element i.
type bound struct {
	most int
	of   func(i int) int
}

// batch returns how many of n elements fit into the next call: as many as all bounds allow, but at least one.
func batch(n int, bounds ...bound) int {
	sums := make([]int, len(bounds))
	for i := range n {
		for j, b := range bounds {
			if sums[j] += b.of(i); sums[j] > b.most && i > 0 {
				return i
			}
		}
	}
	return n
}

// atMost bounds the number of elements.
func atMost(n int) bound { return bound{n, func(int) int { return 1 }} }

// fitting returns how many elements of these sizes, from the first one on, fit into most bytes. It returns at least
// one.
func fitting(sizes []int, most int) int {
	return batch(len(sizes), bound{most, func(i int) int { return sizes[i] }})
}
