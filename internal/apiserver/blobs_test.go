package apiserver

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/fetch/archive"
	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/blob"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testlog"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/webtest"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/worker"
)

// A worker over HTTP gets the files of its task, and brings back large ones, in parts of 8 MiB.
func TestBlobsOverTheAPI(t *testing.T) {
	m := newManager(t)
	cfg := usual(t)
	cfg.Blobs = t.TempDir()
	s := run(t, cfg, m, nil)
	store := managing.Of(m).Store
	var dir *blob.Dir
	expect.Eventually(t, "the place of the blobs in Redis", func() bool {
		id, path, err := store.Blobs.BlobPlace(t.Context())
		expect.NoError(t, err)
		dir, err = blob.FindDir(id, path)
		return err == nil
	})
	direct := blob.Direct{Dir: dir, Registry: store.Blobs}
	large := filepath.Join(t.TempDir(), "large")
	text := strings.Repeat("0123456789", 1_700_000)
	expect.NoError(t, os.WriteFile(large, []byte(text), 0o600))
	f := expect.Result(os.Open(large)).Value(t)
	defer f.Close()
	b := expect.Result(blob.Put(t.Context(), direct, f, func(int64) {})).Value(t)
	b.Path = "in/large"

	token := filepath.Join(t.TempDir(), "token")
	expect.NoError(t, os.WriteFile(token, []byte(webtest.AddToken(t, m, access.Token{Name: "w", Role: access.Worker})), 0o600))
	wcfg := expect.Result(config.DefaultWorker("n")).Value(t)
	wcfg.API, wcfg.Directory = config.API{URL: s.URL, TokenFile: token}, t.TempDir()
	w := expect.Result(worker.New("w", wcfg, worker.WithLog(testspace.Silent), worker.WithArchives(archive.Compressions()...))).Value(t)
	d := testspace.Define("p", "exec:", "sh -c 'cat in/large in/large >out'")
	d.Blobs, d.Fetch = []string{b.String()}, []string{"*"}
	opened := expect.Result(m.Open(t.Context(), d)).Value(t)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	expect.Eventually(t, "the end of the task", func() bool {
		return expect.Result(m.Get(t.Context(), opened[0].ID)).Value(t).State.Finished()
	})
	end()
	expect.NoError(t, <-ended)
	stored := expect.Result(store.ReadOne(t.Context(), opened[0].ID, redisstate.Want{Fields: redisstate.Facts | redisstate.Blobs})).Value(t)
	expect.Equal(t, stored.Task.State, task.Succeeded, stored.Task.Log)
	expect.MustLen(t, stored.Task.Made, 1)
	expect.Equal(t, stored.Task.Made[0].Path, "out")
	var got strings.Builder
	expect.NoError(t, direct.ReadBlob(t.Context(), stored.Task.Made[0], 0, &got))
	expect.True(t, got.String() == text+text, "the content of out")
}

// Clients find one directory. If two APIs of a namespace have directories of their own, both say so, and the announced one
// does not change back and forth. An API that starts again says nothing.
func TestDirectoriesOfTwoAPIs(t *testing.T) {
	store, dirs := managing.Of(newManager(t)).Store, [2]*blob.Dir{}
	for i := range dirs {
		dirs[i] = expect.Result(blob.OpenDir(t.TempDir(), "n")).Value(t)
	}
	for _, step := range []struct {
		api, announced int
		first, warns   bool
	}{{0, 0, true, false}, {0, 0, false, false}, {0, 0, true, false}, {1, 1, true, true}, {1, 1, false, false}, {0, 1, false, true}} {
		var out testlog.Buffer
		expect.NoError(t, announceBlobs(t.Context(), dirs[step.api], store, slog.New(slog.NewTextHandler(&out, nil)), step.first))
		id, path, err := store.Blobs.BlobPlace(t.Context())
		expect.NoError(t, err)
		expect.Equal(t, blob.Dir{Path: path, ID: id}, *dirs[step.announced])
		expect.Equal(t, strings.Contains(out.String(), dirs[1-step.api].Path), step.warns)
	}
}
