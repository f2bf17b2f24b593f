package tdf

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/expect"
)

// An invalid property of a stored task counts as the default, and the error names the property.
func TestInvalidQueueInRedis(t *testing.T) {
	for _, h := range []Hash{
		{"queue": "a b"}, {"priority": "high"}, {"priority": "99999999999"}, {"tags": "a,b\nc"}, {"tags": strings.Repeat("x,", 20) + "x"},
	} {
		h["program"], h["source"], h["state"] = "p", "rsync:/p/run.sh", "open"
		task, err := ParseTask(1, h)
		expect.Fails(t, err, "")
		expect.Equal(t, task.Place(), "")
	}
}

func drawProperties(r *rapid.T) Properties {
	d := Defaults("p;queue=x", "rsync:/p/run.sh", "")
	label := rapid.SampledFrom([]string{"a", "b-1", "ü/x@y", "default", "queue"})
	if rapid.Bool().Draw(r, "has queue") {
		d.Queue = label.Draw(r, "queue")
	}
	d.Priority = int(rapid.Int32().Draw(r, "priority"))
	d.Tags = rapid.SliceOfN(label, 0, 4).Draw(r, "tags")
	d.Group, d.ByGroup = rapid.StringMatching(`[a-z;=+% ü]{0,9}`).Draw(r, "group"), rapid.Bool().Draw(r, "by group")
	if rapid.Bool().Draw(r, "handler") {
		d.Source = ""
	}
	return d
}

// The name of a partition says everything about it, and the stored properties of a task give the same place.
func TestPlaces(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := drawProperties(r)
		name := d.Partition().String()
		if p, ok := ParsePartition(name); !ok || p.String() != name || fmt.Sprint(p) != fmt.Sprint(d.Partition()) {
			r.Fatalf("%q gives %+v, %v", name, p, ok)
		}
		h := Hash{}
		for _, f := range d.OpenFields("ns") {
			h[f.Name] = f.Value
		}
		task, err := ParseTask(1, h)
		if err != nil || task.Place() != d.Place() || task.PlacedIn != d.Place() {
			r.Fatalf("place %q, stored %q, want %q: %v", task.Place(), task.PlacedIn, d.Place(), err)
		}
	})
}

func TestNamesOfPlaces(t *testing.T) {
	for want, d := range map[string]Properties{
		"":                                 {Source: "s"},
		"priority=-1":                      {Source: "s", Priority: -1},
		"queue=a":                          {Source: "s", Queue: "a"},
		"priority=5;queue=a;tags=gpu,ssd":  {Source: "s", Queue: "a", Priority: 5, Tags: []string{"ssd", "gpu", "ssd"}},
		"tags=a+%3B%25b,region%3Aeu":       {Source: "s", Tags: []string{"region:eu", "a ;%b"}},
		"tags=gpu;handler=re;size":         {Program: "re;size", Tags: []string{"gpu"}},
		"group=a%3Bb+c;handler=p":          {Program: "p", Group: "a;b c", ByGroup: true},
		"queue=a;group=g":                  {Source: "s", Queue: "a", Group: "g", ByGroup: true},
		"priority=1;handler=queue=default": {Program: "queue=default", Priority: 1, Queue: DefaultQueue},
	} {
		d.ClaimBefore = Never
		expect.Equal(t, d.Place(), want, d, "is in")
		d.ClaimBefore = 1 // workers of the original TDF must not claim the task
		expect.Equal(t, d.Place(), cmp.Or(want, DefaultPartition), d, "is in")
	}
	for _, name := range []string{"", "queue=", "queue=a;queue=b", "tags=b,a", "priority=1", "x", "queue=default", "tags=a;queue=b", "group=", "group=%", "group=a b", "group=a;tags=b", "tags=a:b", "tags=%"} {
		p, ok := ParsePartition(name)
		expect.True(t, !ok, name, "is read as", p)
	}
}

func TestOfferMatches(t *testing.T) {
	worker := Offer{Queues: []QueueShare{{Queue: "a"}, {Queue: DefaultQueue}}, Tags: []string{"gpu", "ssd"}, Programs: true}
	for name, want := range map[string]bool{
		"default": true, "queue=a": true, "queue=b": false, "queue=a;tags=gpu": true, "tags=gpu,ssd": true, "tags=gpu,tpu": false,
		"handler=x": false, "queue=a;handler=x": false,
	} {
		p, _ := ParsePartition(name)
		expect.Equal(t, worker.Matches(p), want, name)
	}
	grouped := Offer{Programs: true, Group: "a b"}
	for name, want := range map[string]bool{"default": false, "group=a+b": true, "group=a": false, "queue=a;group=a+b": false, "tags=x;group=a+b": false} {
		p, _ := ParsePartition(name)
		expect.Equal(t, grouped.Matches(p), want, "a worker for one group", name)
	}
	handling := Offer{Handlers: []string{"x"}}
	for name, want := range map[string]bool{"default": false, "handler=x": true, "handler=y": false, "queue=a;handler=x": false} {
		p, _ := ParsePartition(name)
		expect.Equal(t, handling.Matches(p), want, "a worker with a handler", name)
	}
}

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
