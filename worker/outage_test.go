package worker

import (
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/redistest"
)

// Redis is away when the program ends. The worker keeps the result. The recorded end of the round is the end of the
// program.
func TestAResultOutlivesAnOutage(t *testing.T) {
	w := newWorld(t)
	w.cfg.Lease = 90 * time.Millisecond
	w.script("p", "#!/bin/sh\necho begun >\"$1\"; read line <\"$1\"; echo result\n")
	p := w.pipe()
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	id := w.open(p.path)
	wait := w.background(t.Context(), w.workerOn(w.connect(proxy.Addr)))
	p.begun()
	proxy.Refuse()
	proxy.Cut()
	eventually(t, "the outage", func() bool { return strings.Contains(w.log.String(), "redis cannot be used") })
	p.ended()
	p.release()
	before, err := w.store.Now(t.Context())
	must(t, err)
	proxy.Resume()
	wait()
	r := w.task(id).Current()
	if w.task(id).State != tdf.Executed || r.Output != "result\n" || r.Exit != "0" {
		t.Errorf("the task is %s: %+v", w.task(id).State, r)
	}
	if at := r.Entered[tdf.Executed]; at < r.Entered[tdf.Running] || at > before.Add(60) {
		t.Errorf("executed at %v", at)
	}
}

// The reply to each call is lost once. The task still runs only once.
func TestLostRepliesChangeNothing(t *testing.T) {
	w := newWorld(t)
	w.script("p", "#!/bin/sh\necho x >>runs; cat runs\n")
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	worker := w.workerOn(w.connect(proxy.Addr))
	id := w.open("", from(w.archive("run.sh", "#!/bin/sh\necho x >>runs; cat runs\n")), func(d *tdf.Properties) { d.Program = "q" })
	seen := map[string]bool{}
	proxy.DropReplies(10, func(command []string) bool {
		if !redistest.Scripts(command) || seen[strings.Join(command, "\n")] {
			return false
		}
		seen[strings.Join(command, "\n")] = true
		return true
	})
	w.runOnce(worker)
	if r := w.task(id).Current(); r.Output != "x\n" || r.Exit != "0" {
		t.Errorf("got %+v", r)
	}
	if proxy.Dropped() < 4 { // the replies to the claim, two renewals and the result
		t.Errorf("only %d replies were dropped", proxy.Dropped())
	}
}
