package class

import (
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func namesOf(shares []QueueShare) (names []string) {
	for _, s := range shares {
		names = append(names, s.Queue)
	}
	return names
}

// With weights, queues share the rounds of a worker. A queue that was empty gets no more than its share afterwards.
func TestTurns(t *testing.T) {
	shares := []QueueShare{{"a", 3}, {"b", 1}}
	var turns Turns
	serve := func(n int, hasA bool) (a, b int) {
		for range n {
			order, claimed := namesOf(turns.Order(shares)), make([]int, 2)
			first := 0
			if order[0] == "a" && !hasA {
				first = 1
			}
			claimed[first] = 1
			if order[first] == "a" {
				a++
			} else {
				b++
			}
			turns.Record(shares, order, claimed)
		}
		return a, b
	}
	if a, b := serve(400, true); a < 299 || a > 301 {
		t.Errorf("a got %d, b got %d rounds, want 3 to 1", a, b)
	}
	serve(1000, false)
	if a, b := serve(40, true); a < 29 || a > 31 {
		t.Errorf("after a was empty: a got %d, b got %d rounds, want 3 to 1", a, b)
	}
}

// Without weights, the queues keep their order, whatever was claimed.
func TestTurnsWithoutWeights(t *testing.T) {
	shares := []QueueShare{{Queue: "a"}, {Queue: "b"}}
	var turns Turns
	turns.Record(shares, []string{"a", "b"}, []int{100, 0})
	expect.Equal(t, turns.Order(shares), shares, "the order")
}

func TestParseQueueShare(t *testing.T) {
	for text, want := range map[string]QueueShare{"a": {"a", 0}, "a/b:3": {"a/b", 3}, "x:1000": {"x", 1000}} {
		got, err := ParseQueueShare(text)
		expect.Equal(t, got, want)
		expect.NoError(t, err)
		expect.Equal(t, got.String(), text)
	}
	for _, text := range []string{"", ":1", "a:", "a:0", "a:1001", "a:-1", "a:1:2", "a b", "a:x"} {
		expect.Result(ParseQueueShare(text)).Fails(t, "", text, "is read as")
	}
}

// A queue that was paused gets no more than its share afterwards.
func TestTurnsAfterAPause(t *testing.T) {
	shares := []QueueShare{{"a", 1}, {"b", 1}}
	var turns Turns
	for range 100 {
		turns.Record(shares, []string{"b"}, []int{1})
	}
	got := 0
	for range 10 {
		order := namesOf(turns.Order(shares))
		if order[0] == "a" {
			got++
		}
		turns.Record(shares, order, []int{1, 0})
	}
	expect.Compare(t, got, ">=", 4)
	expect.Compare(t, got, "<=", 6)
}
