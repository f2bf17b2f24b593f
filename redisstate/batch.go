package redisstate

// A bound limits one quantity of a call, such as its bytes.
type bound struct {
	limit  int             // of the whole call
	amount func(i int) int // the amount that element i adds
}

// batch returns how many of n elements the next call may contain: as many as all bounds allow, but at least one.
func batch(n int, bounds ...bound) int {
	sums := make([]int, len(bounds))
	for i := range n {
		for j, b := range bounds {
			if sums[j] += b.amount(i); sums[j] > b.limit && i > 0 {
				return i
			}
		}
	}
	return n
}

// atMost bounds the number of elements.
func atMost(n int) bound { return bound{n, func(int) int { return 1 }} }

// fitting returns how many elements, counted from the first, have at most the given number of bytes together. It
// returns at least 1.
func fitting(sizes []int, bytes int) int {
	return batch(len(sizes), bound{bytes, func(i int) int { return sizes[i] }})
}
