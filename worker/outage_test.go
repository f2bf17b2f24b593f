package worker

import (
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
)

// dropFirstReplies drops the first reply to each of ten calls of scripts. A repeated call gets its reply.
func dropFirstReplies(proxy *redistest.Proxy) {
	seen := map[string]bool{}
	proxy.DropReplies(10, func(command []string) bool {
		call := strings.Join(command, "\n")
		first := redistest.Scripts(command) && !seen[call]
		seen[call] = true
		return first
	})
}

// The reply to each call is lost once. The task still runs only once.
func TestLostRepliesChangeNothing(t *testing.T) {
	w := newWorld(t)
	w.script("p", "#!/bin/sh\necho x >>runs; cat runs\n")
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	worker := w.workerOn(w.connect(proxy.Addr))
	id := w.open("", from(w.archive("run.sh", "#!/bin/sh\necho x >>runs; cat runs\n")), func(d *tdf.Properties) { d.Program = "q" })
	dropFirstReplies(proxy)
	w.runOnce(worker)
	r := w.task(id).Current()
	expect.True(t, r.Output == "x\n" && r.Exit == "0", r)
	if proxy.Dropped() < 4 { // the replies to the claim, two renewals and the result
		t.Errorf("only %d replies were dropped", proxy.Dropped())
	}
}
