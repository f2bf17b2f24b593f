package task

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
)

// An invalid property of a stored task counts as the default, and the error names the property.
func TestInvalidQueueInRedis(t *testing.T) {
	for _, h := range []Hash{
		{"queue": "a b"}, {"priority": "high"}, {"priority": "99999999999"}, {"tags": "a,b\nc"}, {"tags": strings.Repeat("x,", 20) + "x"},
	} {
		h["program"], h["source"], h["state"] = "p", "rsync:/p/run.sh", "open"
		one, err := ParseTask(1, h)
		expect.Fails(t, err, "")
		expect.Equal(t, one.Place(), "")
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

// The name of a requirement says everything about it, and the stored properties of a task give the same place.
func TestPlaces(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := drawProperties(r)
		name := d.Requirement().String()
		if p, ok := class.ParseRequirement(name); !ok || p.String() != name || fmt.Sprint(p) != fmt.Sprint(d.Requirement()) {
			r.Fatalf("%q gives %+v, %v", name, p, ok)
		}
		h := Hash{}
		for _, f := range d.OpenFields("ns") {
			h[f.Name] = f.Value
		}
		one, err := ParseTask(1, h)
		if err != nil || one.Place() != d.Place() || one.PlacedIn != d.Place() {
			r.Fatalf("place %q, stored %q, want %q: %v", one.Place(), one.PlacedIn, d.Place(), err)
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
		"group=g;queue=a":                  {Source: "s", Queue: "a", Group: "g", ByGroup: true},
		"priority=1;handler=queue=default": {Program: "queue=default", Priority: 1, Queue: class.DefaultQueue},
	} {
		d.ClaimBefore = Never
		expect.Equal(t, d.Place(), want, d, "is in")
		d.ClaimBefore = 1 // workers of the original TDF must not claim the task
		expect.Equal(t, d.Place(), cmp.Or(want, class.Plain), d, "is in")
	}
	for _, name := range []string{"", "queue=", "queue=a;queue=b", "tags=b,a", "priority=1", "x", "queue=default", "tags=a;queue=b", "group=g", "tags=a:b", "tags=%"} {
		p, ok := class.ParseRequirement(name)
		expect.True(t, !ok, name, "is read as", p)
	}
}
