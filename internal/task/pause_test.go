package task

import (
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// Each name in Redis stands for one Pausable, and no other text does.
func TestPausableNames(t *testing.T) {
	for name, want := range map[string]Pausable{
		"namespace": Everything, "queue=a": {Queue: "a"}, "group=a=b": {Group: "a=b"}, "halt=20=a=b": {Group: "a=b", Failures: 20},
	} {
		if got, ok := ParsePausable(name); !ok || got != want || got.String() != name || got.Check() != nil {
			t.Errorf("%s: %+v, %v, %v", name, got, ok, got.Check())
		}
	}
	for _, name := range []string{"", "halt=", "halt=a", "halt=0=a", "halt=-1=a", "halt=020=a", "halt=99999999999999999999=a", "halt", "group=", "x=1"} {
		if got, ok := ParsePausable(name); ok {
			t.Errorf("%q is %+v", name, got)
		}
	}
	for _, p := range []Pausable{{}, {Namespace: true, Queue: "q"}, {Queue: "q", Group: "g"}, {Failures: 1}, {Queue: "q", Failures: 1}, {Group: "g", Failures: -1}, {Group: "g", Queue: "q", Failures: 2}} {
		expect.Fails(t, p.Check(), "", "is valid")
	}
	halt := Pausable{Group: "g", Failures: 3}
	expect.True(t, !halt.IsReached(Counts{Failed: 1, TimedOut: 1, Expired: 5}), "a wrong number of failures counts")
	expect.True(t, halt.IsReached(Counts{Failed: 2, TimedOut: 1}), "a wrong number of failures counts")
	expect.True(t, !(Pausable{Group: "g"}).IsReached(Counts{Failed: 9}), "a wrong number of failures counts")
}
