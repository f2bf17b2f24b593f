package class

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// DefaultQueue stands for the tasks without a queue, for example in a worker's key `queues`.
const DefaultQueue = "default"

// MaxLabel is the largest length of the name of a queue, in characters.
const MaxLabel = 64

// CheckQueue checks the name of a queue. Such a name consists of letters, digits and the characters . _ - / @. The
// error has no subject: it says what the name should be.
func CheckQueue(s string) error {
	switch n := utf8.RuneCountInString(s); {
	case s == "":
		return fmt.Errorf("a name is empty; want 1 to %d characters", MaxLabel)
	case !utf8.ValidString(s):
		return fmt.Errorf("%q is not valid UTF-8", s)
	case n > MaxLabel:
		return fmt.Errorf("%.20q… has %d characters; at most %d are allowed", s, n, MaxLabel)
	}
	for _, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-/@", r) {
			return fmt.Errorf("%q contains %q; want only letters, digits and the characters . _ - / @", s, string(r))
		}
	}
	return nil
}

// A QueueShare is a queue that a worker serves.
type QueueShare struct {
	Queue string
	// Weight is the queue's share of the worker's rounds, compared with the weights of the other queues. If no queue
	// has a weight above 0, the worker takes a task of a queue only if the queues before it have no due tasks.
	Weight int
}

// MaxWeight is the largest weight of a queue.
const MaxWeight = 1000

// String returns the text from which [ParseQueueShare] makes the same QueueShare.
func (s QueueShare) String() string {
	if s.Weight == 0 {
		return s.Queue
	}
	return s.Queue + ":" + strconv.Itoa(s.Weight)
}

// ParseQueueShare reads a queue and its weight, such as "crawl:3". Without a weight, the weight is 0.
func ParseQueueShare(s string) (QueueShare, error) {
	name, weight, weighted := strings.Cut(s, ":")
	q := QueueShare{Queue: name}
	if err := CheckQueue(name); err != nil {
		return q, err
	}
	if !weighted {
		return q, nil
	}
	n, err := strconv.Atoi(weight)
	if err != nil || n < 1 || n > MaxWeight {
		return q, fmt.Errorf("the weight %q of queue %s is not a number from 1 to %d", weight, name, MaxWeight)
	}
	q.Weight = n
	return q, nil
}

// Turns decides which queue a worker serves first, so that each queue gets its share of the worker's rounds. The zero
// value is ready to use.
//
// For each queue, Turns adds up the claimed tasks, divided by the weight of the queue. The queue with the lowest sum
// comes first. A queue without due tasks does not catch up later.
type Turns struct{ served map[string]float64 }

// Order returns the shares in the order in which the worker serves the queues next. Shares without weights keep their
// order.
func (t *Turns) Order(shares []QueueShare) []QueueShare {
	if !weighted(shares) {
		return shares
	}
	ordered := slices.Clone(shares)
	slices.SortStableFunc(ordered, func(a, b QueueShare) int {
		return cmp.Compare(t.served[a.Queue], t.served[b.Queue])
	})
	return ordered
}

// Record adds the numbers of claimed tasks. The queues and these numbers are in the order in which the claim served the
// queues.
func (t *Turns) Record(shares []QueueShare, queues []string, claimed []int) {
	if !weighted(shares) {
		return
	}
	if t.served == nil {
		t.served = map[string]float64{}
	}
	first := slices.IndexFunc(claimed, func(n int) bool { return n > 0 })
	if first < 0 || first >= len(queues) {
		return
	}
	least := t.served[queues[first]]
	for _, s := range shares {
		if !slices.Contains(queues[first:], s.Queue) { // it has no due tasks, or is paused
			t.served[s.Queue] = max(t.served[s.Queue], least)
		}
	}
	for i, n := range claimed[:min(len(claimed), len(queues))] {
		t.served[queues[i]] += float64(n) / weightOf(shares, queues[i])
	}
}

func weighted(shares []QueueShare) bool {
	return slices.ContainsFunc(shares, func(s QueueShare) bool { return s.Weight > 0 })
}

func weightOf(shares []QueueShare, queue string) float64 {
	i := slices.IndexFunc(shares, func(s QueueShare) bool { return s.Queue == queue })
	if i < 0 {
		return 1
	}
	return float64(max(shares[i].Weight, 1))
}
