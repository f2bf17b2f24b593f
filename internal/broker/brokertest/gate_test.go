package brokertest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
)

// A gate stands between a tdf-worker and the API. It passes a claim when the row asks for a task.
type gate struct {
	*httptest.Server
	site  *site
	asked chan struct{}
	none  chan struct{} // the claim got no task
}

func newGate(s *scene) *gate {
	g := &gate{site: s.api(), asked: make(chan struct{}, 1), none: make(chan struct{})}
	g.Server = httptest.NewServer(g)
	s.Cleanup(g.Close)
	return g
}

// config returns the configuration with which a worker reaches the gate.
func (g *gate) config(s *scene) config.API {
	path := filepath.Join(s.TempDir(), "token")
	expect.NoError(s, os.WriteFile(path, []byte(g.site.token), 0o600))
	return config.API{URL: g.URL, TokenFile: path}
}

var wait = regexp.MustCompile(`"wait":[0-9.]+,?`)

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/claims") {
		g.site.ServeHTTP(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	now := wait.ReplaceAll(body, nil)
	if len(now) == len(body) { // the next claim waits
		fmt.Fprint(w, `{"tasks":[],"lease":300}`)
		return
	}
	select {
	case <-g.asked:
	case <-r.Context().Done():
		return
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(now)), int64(len(now))
	got := httptest.NewRecorder()
	g.site.ServeHTTP(got, r)
	if got.Code != http.StatusOK { // the worker repeats the call
		g.asked <- struct{}{}
	}
	w.WriteHeader(got.Code)
	_, _ = w.Write(got.Body.Bytes()) // fails if the worker has stopped
	if strings.Contains(got.Body.String(), `"tasks":[]`) {
		g.none <- struct{}{}
	}
}

// claimOverAPI returns the round of the next task, or nil if there is none.
func (l *local) claimOverAPI() round {
	if !l.registered() {
		expect.MustEqual(l, l.register(), "", "register")
	}
	l.gate.asked <- struct{}{}
	select {
	case r := <-l.begun:
		return r
	case <-l.gate.none:
		return nil
	}
}
