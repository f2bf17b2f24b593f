package worker

import (
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/redistest"
)

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
