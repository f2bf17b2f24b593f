package conn

import "github.com/tdf-framework/tdf/internal/task"

// An Args builds the arguments of a call to a script. The header of each script describes its arguments.
type Args struct {
	All []any

	// the last texts; All has pointers to them, because each string in an interface would be an allocation
	texts []string
}

func (e *Args) Add(values ...string) {
	if cap(e.texts)-len(e.texts) < len(values) {
		e.texts = make([]string, 0, max(len(values), len(e.All)/2, 16))
	}
	for _, v := range values {
		e.texts = append(e.texts, v)
		e.All = append(e.All, &e.texts[len(e.texts)-1])
	}
}

func (e *Args) Count(n int) { e.All = append(e.All, n) }

func (e *Args) Flag(on bool) {
	if on {
		e.Add("1")
	} else {
		e.Add("")
	}
}

func (e *Args) Strings(values []string) {
	e.Count(len(values))
	e.Add(values...)
}

func (e *Args) States(states []task.State) {
	e.Count(len(states))
	for _, s := range states {
		e.Add(string(s))
	}
}

// A Bound limits one quantity of a call, such as its bytes.
type Bound struct {
	Limit  int             // of the whole call
	Amount func(i int) int // the amount that element i adds
}

// Batch returns how many of n elements the next call may contain: as many as all bounds allow, but at least one.
func Batch(n int, bounds ...Bound) int {
	sums := make([]int, len(bounds))
	for i := range n {
		for j, b := range bounds {
			if sums[j] += b.Amount(i); sums[j] > b.Limit && i > 0 {
				return i
			}
		}
	}
	return n
}

// AtMost bounds the number of elements.
func AtMost(n int) Bound { return Bound{n, func(int) int { return 1 }} }

// Fitting returns how many elements, counted from the first, have at most the given number of bytes together. It
// returns at least 1.
func Fitting(sizes []int, bytes int) int {
	return Batch(len(sizes), Bound{bytes, func(i int) int { return sizes[i] }})
}
