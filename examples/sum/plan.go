package main

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Bounds of a plan: a bucket's numbers have to fit into the input of a task, and its tasks
// into Redis.
const (
	mostInBucket = 5000
	mostTasks    = 1_000_000
)

// A plan cuts the sum of from..to into tasks. Those of level 0 each sum a bucket of numbers;
// those of each further level each sum a bucket of results of the level before; the last
// level has one task.
type plan struct {
	from, to int64
	bucket   int64
	widths   []int64 // how many tasks each level has
}

// A place is where a task stands in a plan. It is kept in the task's meta.
type place struct {
	Level int   `json:"level"`
	Index int64 `json:"index"`
}

func newPlan(from, to, bucket int64) (*plan, error) {
	switch {
	case from > to:
		return nil, fmt.Errorf("there are no numbers from %d to %d", from, to)
	case bucket < 2 || bucket > mostInBucket:
		return nil, fmt.Errorf("a bucket of %d is not possible; from 2 to %d are", bucket, mostInBucket)
	}
	if err := checkBounds(from, to, bucket); err != nil {
		return nil, err
	}
	p := &plan{from: from, to: to, bucket: bucket}
	for width := buckets(to-from+1, bucket); ; width = buckets(width, bucket) {
		p.widths = append(p.widths, width)
		if width == 1 {
			return p, nil
		}
	}
}

// checkBounds makes sure that no partial sum leaves 64 bits, in whatever order it is made.
func checkBounds(from, to, bucket int64) error {
	count := new(big.Int).Sub(big.NewInt(to), big.NewInt(from))
	count.Add(count, big.NewInt(1))
	largest := new(big.Int).Abs(big.NewInt(from))
	if other := new(big.Int).Abs(big.NewInt(to)); other.Cmp(largest) > 0 {
		largest = other
	}
	if !new(big.Int).Mul(count, largest).IsInt64() {
		return errors.New("the sum may not fit into 64 bits; choose a smaller range")
	}
	if most := new(big.Int).Mul(big.NewInt(mostTasks), big.NewInt(bucket)); count.Cmp(most) > 0 {
		return fmt.Errorf("that takes more than %d tasks; choose larger buckets, or a smaller range", mostTasks)
	}
	return nil
}

// buckets returns how many buckets it takes for so many things.
func buckets(things, bucket int64) int64 { return (things + bucket - 1) / bucket }

// root is the place of the last task, whose result is the sum.
func (p *plan) root() place { return place{Level: len(p.widths) - 1} }

// holds reports whether there is such a place.
func (p *plan) holds(at place) bool {
	return at.Level >= 0 && at.Level < len(p.widths) && at.Index >= 0 && at.Index < p.widths[at.Level]
}

// parent returns the place of the task that sums the bucket to which a place's result belongs.
func (p *plan) parent(at place) place { return place{at.Level + 1, at.Index / p.bucket} }

// children returns the places whose results a task above level 0 sums.
func (p *plan) children(at place) []place {
	first := at.Index * p.bucket
	end := min(first+p.bucket, p.widths[at.Level-1])
	var places []place
	for i := first; i < end; i++ {
		places = append(places, place{at.Level - 1, i})
	}
	return places
}

// opens reports whether it is this place's task that opens its parent: the last of a bucket.
func (p *plan) opens(at place) bool {
	return at != p.root() && ((at.Index+1)%p.bucket == 0 || at.Index+1 == p.widths[at.Level])
}

// numbers is the input of a task of level 0.
func (p *plan) numbers(index int64) string {
	first, last := p.from+index*p.bucket, p.to
	if last-first >= p.bucket {
		last = first + p.bucket - 1
	}
	return fmt.Sprintf("%d..%d", first, last)
}

// join is the input of a task of any further level.
func join(results []int64) string {
	words := make([]string, len(results))
	for i, r := range results {
		words[i] = strconv.FormatInt(r, 10)
	}
	return strings.Join(words, " ")
}
