package cmd_test

import (
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// With [http] listen, tdf-server also serves the HTTP API. The same file has the defaults of new tasks.
func TestServerServesTheAPI(t *testing.T) {
	s := newSite(t)
	file := s.config("[http]\nlisten=127.0.0.1:0\n[task_defaults]\nmax_fails=7")
	tokens := exec.Command(built(t, "tdf"), "--config", file, "token", "add", "a", "--role", "operator")
	tokens.Env = environment()
	token := strings.TrimSpace(string(expect.Result(tokens.Output()).Value(t)))
	server := start(t, "tdf-server", "s", file)
	server.logs("msg=serving ")
	url := regexp.MustCompile(`url=(http://127\.0\.0\.1:\d+)`).FindStringSubmatch(server.stderr.String())
	expect.MustLen(t, url, 2, "the log has no address", server.stderr.String())
	call := func(method, path, body string) (int, string) {
		t.Helper()
		r := expect.Result(http.NewRequestWithContext(t.Context(), method, url[1]+path, strings.NewReader(body))).Value(t)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Close = true
		answer := expect.Result(http.DefaultClient.Do(r)).Value(t)
		defer answer.Body.Close()
		return answer.StatusCode, string(expect.Result(io.ReadAll(answer.Body)).Value(t))
	}
	eventually(t, "the API says that it is ready", func() bool {
		status, _ := call("GET", "/readyz", "")
		return status == 200
	})
	status, text := call("POST", "/api/v1/tasks", `{"program": "p", "source": "rsync:/nowhere/run.sh"}`)
	expect.Equal(t, status, 201, text)
	one := expect.Result(s.store.ReadOne(t.Context(), 1, redisstate.Want{Fields: redisstate.Whole})).Value(t).Task
	expect.Equal(t, one.State, task.Open)
	expect.Equal(t, one.MaxFails, 7)
	server.signal(syscall.SIGTERM)
	server.exits(0, "msg=stopped")
	expect.True(t, !strings.Contains(server.stderr.String(), token), "the log has the token")
}

// If the API cannot be served, tdf-server serves nothing.
func TestServerWithoutItsAPI(t *testing.T) {
	s := newSite(t)
	for keys, c := range map[string]struct {
		status int
		text   string
	}{
		"listen=:0":                         {2, "[http] listen: \":0\" is not a loopback address; expected tls_cert and tls_key"},
		"listen=:0\ninsecure=True":          {2, "[http] listen: :0 is not a loopback address, and the namespace has no token"},
		"listen=:0\ntls_cert=/a\ntls_key=b": {2, "[http] tls_cert: open /a: no such file or directory"},
		"listen=" + s.addr:                  {1, "serve the HTTP API: listen tcp " + s.addr},
	} {
		p := start(t, "tdf-server", "s", s.config("[http]\n%s", keys))
		p.exits(c.status, c.text)
		expect.True(t, !strings.Contains(p.stderr.String(), "msg=serving"), "the server has served", p.stderr.String())
	}
}
