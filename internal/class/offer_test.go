package class

import (
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// Each row has a requirement, by its name, and what the offer lacks for it.
func TestLacks(t *testing.T) {
	cpus := Amounts{{CPUs, 4 * Scale}}
	for _, offer := range []struct {
		Offer
		lacks map[string][]Need
	}{
		{Offer{}, map[string][]Need{"default": {Program}, "handler=x": {Program}}},
		{Offer{Programs: true}, map[string][]Need{
			"default": nil, "queue=a": {Queue}, "tags=gpu": {Tags}, "handler=x": {Program}, "min_time=60": nil,
			"resources=cpus:10000": {Resources}, "queue=a;tags=gpu;handler=x": {Queue, Tags, Program},
		}},
		{Offer{Programs: true, Queues: []QueueShare{{Queue: "a"}, {Queue: DefaultQueue}}, Tags: []string{"gpu", "ssd"}}, map[string][]Need{
			"default": nil, "queue=a": nil, "queue=b": {Queue}, "queue=a;tags=gpu": nil, "tags=gpu,ssd": nil, "tags=gpu,tpu": {Tags},
		}},
		{Offer{Programs: true, Queues: []QueueShare{{Queue: "a"}}}, map[string][]Need{"default": {Queue}, "queue=a": nil}},
		{Offer{Programs: true, Group: "a b"}, map[string][]Need{
			"default": {Group}, "queue=a": {Queue, Group},
		}},
		{Offer{Handlers: []string{"x"}}, map[string][]Need{"default": {Program}, "handler=x": nil, "handler=y": {Program}, "queue=a;handler=x": {Queue}}},
		{Offer{Anything: true}, map[string][]Need{"default": {Program}, "handler=x": nil}},
		{Offer{Programs: true, Resources: cpus}, map[string][]Need{
			"default": nil, "resources=cpus:40000": nil, "resources=cpus:40001": {Resources}, "resources=cpus:50000|cpus:10000": nil,
			"resources=cpus:10000,gpus:10000": {Resources},
		}},
		{Offer{Programs: true, Resources: Amounts{{Memory, 1}}}, map[string][]Need{"default": {Resources}}},
		{Offer{Programs: true, TimeLeft: 60}, map[string][]Need{"default": nil, "min_time=60": nil, "min_time=60.500000": {Time}}},
	} {
		for name, want := range offer.lacks {
			r, ok := ParseRequirement(name)
			expect.True(t, ok, name)
			expect.Equal(t, Lacks(&offer.Offer, r), want, offer.Offer, name)
			expect.Equal(t, Serves(&offer.Offer, r), len(want) == 0, offer.Offer, name)
		}
	}
}

// A worker for one group serves what has its group. What claims know of a requirement leaves out the queue, the group and the time left.
func TestServed(t *testing.T) {
	o := Offer{Programs: true, Group: "g", Queues: []QueueShare{{Queue: "a"}}, TimeLeft: 5, Resources: Amounts{{CPUs, 4 * Scale}}}
	of := func(group string) Requirement { return Requirement{Queue: "a", Group: group} }
	expect.True(t, Serves(&o, of("g")), "its group")
	expect.True(t, !Serves(&o, of("h")), "another group")
	for name, want := range map[string]string{
		"default": "0;", "queue=b": "0;", "min_time=60": "60;", "resources=cpus:10000|cpus:50000|cpus:20000": "0;cpus:10000|cpus:20000",
		"resources=cpus:50000": "", "tags=x": "", "handler=x": "",
	} {
		r, _ := ParseRequirement(name)
		got, ok := o.Served(r)
		expect.Equal(t, got, want, name)
		expect.Equal(t, ok, want != "", name)
	}
}
