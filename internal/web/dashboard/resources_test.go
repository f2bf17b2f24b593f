package dashboard_test

import (
	"testing"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/web"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// The page of the workers shows what a worker uses of what it offers, and a task's page shows what its rounds ask for.
func TestResources(t *testing.T) {
	s := newSite(t, web.Options{})
	amounts := func(text string) class.Amounts { return expect.Result(class.ParseAmounts(text)).Value(t) }
	w := presence.WorkerInfo{
		Name: "w", Boot: "w", Lease: 3600, State: "working", Slots: 8, Offer: class.Offer{Resources: amounts("cpus=8 gpus=2 memory=16G")},
		Used: amounts("cpus=2.5 memory=2G"),
	}
	expect.Result(s.store.Presence.WorkerHeartbeat(t.Context(), w)).OK(t)
	d := testspace.Define("p", "rsync:/p/run.sh", "")
	d.Resources = "gpus=1 or cpus=16"
	expect.Result(s.manager.Open(t.Context(), d)).OK(t)
	b := s.as(access.Viewer)
	expect.Contains(t, b.page("/ui/workers", 200), "cpus 2.5 of 8, gpus 0 of 2, memory 2G of 16G")
	expect.Contains(t, b.page("/ui/tasks/1", 200), "Each round asks for cpus=1 gpus=1 or cpus=16.")
}
