package redisstate

// A bound is how much of something one call may have, and how much of it each element has.
type bound struct {
	most int
	of   func(i int) int
}

// batch returns how many of the first n elements make up the next call: as many as all bounds allow, but at least one.
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

// fitting returns how many of the sizes add up to most or less, but at least one.
func fitting(sizes []int, most int) int {
	return batch(len(sizes), bound{most, func(i int) int { return sizes[i] }})
}
