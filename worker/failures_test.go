package worker

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// While rounds of a program fail one after another, the worker reports that its slots pause. Other workers still claim.
func TestSlotsThatPauseAfterFailures(t *testing.T) {
	at := time.Unix(1000, 0)
	a := newFailures(time.Minute)
	a.clock = func() time.Time { return at }
	for range slowedAfter - 1 {
		a.failed("p", "exit 1")
	}
	expect.Equal(t, a.pauses(), nil)
	expect.Len(t, a.changed, 0)
	a.failed("p", "exit 1: no such file")
	want := []presence.Pause{{Program: "p", For: 60, Why: "5 rounds failed in a row; the last failure: exit 1: no such file"}}
	expect.Equal(t, a.pauses(), want)
	expect.Len(t, a.changed, 1)
	at = at.Add(2 * slowsFor)
	expect.Len(t, a.pauses(), 0, "long after the last failure")
	a.failed("p", "exit 1")
	a.succeeded("p")
	expect.Len(t, a.pauses(), 0, "after a success")
	for range slowedAfter {
		a.failed("sum-1a2b3c4d", "exit 1")
		a.failed("sum-2-1a2b3c4d", "exit 1")
	}
	expect.Len(t, a.pauses(), 2)
	<-a.changed
	a.succeeded("sum-1a2b3c4e")
	expect.Len(t, a.pauses(), 1, "after a success of the corrected program")
	expect.Len(t, a.changed, 1)
	a.failed("sum-1a2b3c4d", "exit 2")
	expect.Len(t, a.pauses(), 2, "after another failure of the old program")
	for i := range 2 * mostFailing {
		a.failed(strconv.Itoa(i), strings.Repeat("x y ", 1e4))
	}
	expect.Len(t, a.programs, mostFailing, "programs are remembered")
	expect.Compare(t, len(a.programs[strconv.Itoa(2*mostFailing-1)].why), "<=", broker.MaxShort+10)
}
