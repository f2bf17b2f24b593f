package main

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Limits of a plan. The numbers of a bucket must fit into a task's input.
const (
	maxBucket = 5000
	maxTasks  = 1_000_000
)

// A plan divides the sum of from..to into tasks. A task of level 0 sums a bucket of numbers. A task of a higher level
// sums a bucket of results of the level below. The last level has one task.
type plan struct {
	from, to int64
	bucket   int64
	widths   []int64 // number of tasks of each level
}

// A place is the position of a task in a plan. The task's meta contains it.
type place struct {
	Level int   `json:"level"`
	Index int64 `json:"index"`
}

func newPlan(from, to, bucket int64) (*plan, error) {
	switch {
	case from > to:
		return nil, fmt.Errorf("no numbers from %d to %d", from, to)
	case bucket < 2 || bucket > maxBucket:
		return nil, fmt.Errorf("invalid bucket size %d: want 2 to %d", bucket, maxBucket)
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

// checkBounds returns an error if a partial sum could exceed 64 bits, or if the plan has too many tasks.
func checkBounds(from, to, bucket int64) error {
	count := new(big.Int).Sub(big.NewInt(to), big.NewInt(from))
	count.Add(count, big.NewInt(1))
	largest := new(big.Int).Abs(big.NewInt(from))
	if other := new(big.Int).Abs(big.NewInt(to)); other.Cmp(largest) > 0 {
		largest = other
	}
	if !new(big.Int).Mul(count, largest).IsInt64() {
		return errors.New("the sum may exceed 64 bits; choose a smaller range")
	}
	if limit := new(big.Int).Mul(big.NewInt(maxTasks), big.NewInt(bucket)); count.Cmp(limit) > 0 {
		return fmt.Errorf("the sum needs more than %d tasks; choose larger buckets or a smaller range", maxTasks)
	}
	return nil
}

// buckets returns the number of buckets for n numbers.
func buckets(n, bucket int64) int64 { return (n + bucket - 1) / bucket }

// root returns the place of the last task, whose result is the sum.
func (p *plan) root() place { return place{Level: len(p.widths) - 1} }

// holds reports whether a place is part of the plan.
func (p *plan) holds(at place) bool {
	return at.Level >= 0 && at.Level < len(p.widths) && at.Index >= 0 && at.Index < p.widths[at.Level]
}

// parent returns the place of the task that sums the result of the task at a place.
func (p *plan) parent(at place) place { return place{at.Level + 1, at.Index / p.bucket} }

// children returns the places of the results that a task sums. The task's level must be above 0.
func (p *plan) children(at place) []place {
	first := at.Index * p.bucket
	end := min(first+p.bucket, p.widths[at.Level-1])
	var places []place
	for i := first; i < end; i++ {
		places = append(places, place{at.Level - 1, i})
	}
	return places
}

// opens reports whether the task at a place opens its parent. In each bucket, only the last task does.
func (p *plan) opens(at place) bool {
	return at != p.root() && ((at.Index+1)%p.bucket == 0 || at.Index+1 == p.widths[at.Level])
}

// numbers returns the input of the task of level 0 with this index.
func (p *plan) numbers(index int64) string {
	first, last := p.from+index*p.bucket, p.to
	if last-first >= p.bucket {
		last = first + p.bucket - 1
	}
	return fmt.Sprintf("%d..%d", first, last)
}

// join returns the input of a task that sums these results.
func join(results []int64) string {
	words := make([]string, len(results))
	for i, r := range results {
		words[i] = strconv.FormatInt(r, 10)
	}
	return strings.Join(words, " ")
}
