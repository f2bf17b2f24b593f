package apiserver

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/fetch/archive"
	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/webtest"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/worker"
)

// A worker over HTTP gives its programs the resources that it offers, and runs what fits.
func TestResourcesOverTheAPI(t *testing.T) {
	m := newManager(t)
	s := run(t, usual(t), m, nil)
	token := filepath.Join(t.TempDir(), "token")
	expect.NoError(t, os.WriteFile(token, []byte(webtest.AddToken(t, m, access.Token{Name: "w", Role: access.Worker})), 0o600))
	cfg := expect.Result(config.DefaultWorker("n")).Value(t)
	cfg.API, cfg.Directory = config.API{URL: s.URL, TokenFile: token}, t.TempDir()
	cfg.Resources = expect.Result(class.ParseResourceOffer("cpus=4 gpus=2 licence=1")).Value(t)
	w := expect.Result(worker.New("w", cfg, worker.WithLog(testspace.Silent), worker.WithArchives(archive.Compressions()...))).Value(t)
	var all []manager.Definition
	busy := t.TempDir()
	for _, request := range []string{"gpus=1 licence=1", "gpus=1 licence=1", "gpus=2 licence=1", "cpus=4", "", "gpus=0.5"} {
		d := testspace.Define("p", "exec:", "sh -c 'echo $TDF_RESOURCES,$CUDA_VISIBLE_DEVICES; case $TDF_RESOURCES in *licence*) mkdir "+busy+"/x && rmdir "+busy+"/x;; esac'")
		d.Resources = request
		all = append(all, d)
	}
	opened := expect.Result(m.Open(t.Context(), all...)).Value(t)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	var outputs []string
	for _, x := range opened {
		expect.Eventually(t, "the end of the task", func() bool {
			return expect.Result(m.Get(t.Context(), x.ID)).Value(t).State.Finished()
		})
		outputs = append(outputs, expect.Result(m.Get(t.Context(), x.ID)).Value(t).LastRun().Output)
	}
	end()
	expect.NoError(t, <-ended)
	text := strings.Join(outputs, "")
	expect.Contains(t, text, "cpus=1 gpus=2 licence=1,0,1\n")
	expect.Contains(t, text, "cpus=4,-1\ncpus=1,-1\n")
	expect.Contains(t, text, "cpus=1 gpus=0.5,")
	expect.Equal(t, strings.Count(text, "cpus=1 gpus=1 licence=1,"), 2)
}
