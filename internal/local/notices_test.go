package local

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// The webhook of the configuration gets a notice when a campaign ends.
func TestNotices(t *testing.T) {
	calls := make(chan *http.Request, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { calls <- r }))
	defer receiver.Close()
	r, at := serve(t, t.TempDir(), "")
	cfg := configured(t, at, 1)
	cfg.Notify = config.Notify{Webhook: receiver.URL, PrivateAddresses: true}
	running, store := start(t, cfg)
	eventually(t, "the first walk has ended", func() bool {
		return expect.Result(store.Notices.Marks(t.Context(), "begun")).Value(t)[0] != ""
	})
	one := task.Defaults("p", "rsync:/nowhere/run.sh", "1")
	one.Group = "night"
	expect.NoError(t, os.Mkdir(filepath.Join(running.Directory, "p"), 0o755))
	expect.NoError(t, os.WriteFile(filepath.Join(running.Directory, "p", "run.sh"), []byte("#!/bin/sh\n"), 0o755))
	expect.Result(store.Open(t.Context(), "test", one)).OK(t)
	expect.NoError(t, store.Groups.CloseGroup(t.Context(), "night"))
	expect.True(t, (<-calls).Header.Get("webhook-id") != "", "a notice without an id")
	expect.NoError(t, running.Stop())
	r.Stop()
}
