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
			"default": nil, "queue=a": {Queue}, "tags=gpu": {Tags}, "handler=x": {Program}, "group=g": nil, "min_time=60": nil,
			"resources=cpus:10000": {Resources}, "queue=a;tags=gpu;handler=x": {Queue, Tags, Program},
		}},
		{Offer{Programs: true, Queues: []QueueShare{{Queue: "a"}, {Queue: DefaultQueue}}, Tags: []string{"gpu", "ssd"}}, map[string][]Need{
			"default": nil, "queue=a": nil, "queue=b": {Queue}, "queue=a;tags=gpu": nil, "tags=gpu,ssd": nil, "tags=gpu,tpu": {Tags},
		}},
		{Offer{Programs: true, Queues: []QueueShare{{Queue: "a"}}}, map[string][]Need{"default": {Queue}, "queue=a": nil}},
		{Offer{Programs: true, Group: "a b"}, map[string][]Need{
			"default": {Group}, "group=a+b": nil, "group=a": {Group}, "queue=a;group=a+b": {Queue}, "tags=x;group=a+b": {Tags},
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
