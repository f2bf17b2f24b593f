package main

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testlog"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/redisstate/walk"
)

// A served is a namespace with a running tdf serve.
type served struct {
	t      *testing.T
	space  config.Manager
	global []string
	token  string
	base   string // the address
	log    testlog.Buffer
	end    context.CancelFunc
	done   chan int // gets the exit status
}

// serve runs tdf serve with more arguments, in a new namespace.
func serve(t *testing.T, more ...string) *served {
	space := testspace.Config(t, redistest.Shared(t))
	s := &served{t: t, space: space, done: make(chan int, 1)}
	s.global = []string{"--redis", space.Redis.Addr(), "--namespace", space.Namespace, "--set", "redis.db=" + strconv.Itoa(space.Redis.DB)}
	s.token = strings.TrimSpace(s.tdf("token", "add", "ci", "--role", "operator"))
	ctx, end := context.WithCancel(t.Context())
	s.end = end
	t.Cleanup(end)
	go func() {
		args := slices.Concat(s.global, []string{"serve", "--listen", "127.0.0.1:0"}, more)
		s.done <- execute(ctx, cli.Process{Stdout: io.Discard, Stderr: &s.log}, args...)
	}()
	expect.Eventually(t, "the address", func() bool {
		found := regexp.MustCompile(`listens on (http://127\.0\.0\.1:\d+);`).FindStringSubmatch(s.log.String())
		if found != nil {
			s.base = found[1]
		}
		return found != nil
	})
	return s
}

// tdf runs a command and returns its stdout.
func (s *served) tdf(args ...string) string {
	s.t.Helper()
	var stdout bytes.Buffer
	status := execute(s.t.Context(), cli.Process{Stdout: &stdout, Stderr: io.Discard}, append(slices.Clip(s.global), args...)...)
	expect.MustEqual(s.t, status, 0, args)
	return stdout.String()
}

func (s *served) call(method, path, kind, body string) (int, string) {
	s.t.Helper()
	request := expect.Result(http.NewRequestWithContext(s.t.Context(), method, s.base+path, strings.NewReader(body))).Value(s.t)
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", kind)
	response := expect.Result(http.DefaultClient.Do(request)).Value(s.t)
	defer response.Body.Close()
	text := expect.Result(io.ReadAll(response.Body)).Value(s.t)
	return response.StatusCode, string(text)
}

// tdf serve serves the API until its context ends.
func TestServe(t *testing.T) {
	s := serve(t)
	status, text := s.call("POST", "/api/v1/tasks", "application/json", `{"program": "p", "source": "rsync:/nowhere/run.sh", "input": "5"}`)
	expect.Equal(t, status, http.StatusCreated)
	expect.Contains(t, text, `"ids":[1]`, "opening", status)
	status, text = s.call("GET", "/api/v1/tasks/1", "", "")
	expect.Equal(t, status, http.StatusOK)
	expect.Contains(t, text, `"state":"open"`, "reading", status)
	http.DefaultClient.CloseIdleConnections()
	s.end()
	expect.Equal(t, <-s.done, 0, "status")
	expect.NotContains(t, s.log.String(), s.token)
	expect.Contains(t, s.log.String(), "path=/api/v1/tasks/1")
}

// docs/lifecycle.md, "Defaults", says for each way to open a task which properties differ from the defaults of a manager.
func TestDefaultsOfEachWay(t *testing.T) {
	s := serve(t, "--set", "http.skuld=/skuld", "--set", "http.taskstore=/ts", "--set", "http.taskmaster=/tm")
	m := testspace.Manager(t, s.space)
	const source = `"program": "p", "source": "rsync:/x/run.sh"`
	post := func(path, kind, body string) func() {
		return func() {
			status, text := s.call("POST", path, kind, body)
			expect.MustEqual(t, status/100, 2, text)
		}
	}
	ways := map[string]func(){
		"a manager in Go":                        func() { expect.Result(m.Open(t.Context(), testspace.Define("p", "rsync:/x/run.sh", "1"))).OK(t) },
		"`tdf open`":                             func() { s.tdf("open", "--program", "p", "--source", "rsync:/x/run.sh") },
		"`POST /tasks`":                          post("/api/v1/tasks", "application/json", "{"+source+"}"),
		"`POST /sweeps`, the form of a campaign": post("/api/v1/sweeps?task="+url.QueryEscape(`{"campaign": "c", `+source+`}`), "text/csv", "a\n1\n"),
		"Skuld":                                  post("/skuld/enqueue", "application/json", `{"task": {"queue": "q", "data": "x"}}`),
		"TaskStore":                              post("/ts/update", "application/json", `{"clientid": 1, "adds": [{"group": "g", "data": "x"}]}`),
		"Taskmaster":                             post("/tm/tasks/v1", "application/json", `{"queueName": "q", "payload": {}}`),
	}
	usual := task.Defaults("", "", "")
	said := []string{"program", "source", "input", "input_encoding", "owner", "correlation_id", "queue", "group", "by_group", "meta", "start_after", "unique"} // by the call itself
	listed := 0
	text := string(expect.Result(os.ReadFile("../../docs/lifecycle.md")).Value(t))
	_, section, _ := strings.Cut(text, "\n## Defaults\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, row := range regexp.MustCompile(`(?m)^\| (.*) \| (.*) \|$`).FindAllStringSubmatch(section, -1) {
		open := ways[row[1]]
		if open == nil {
			continue // the head of the table
		}
		before := expect.Result(walk.LastID(t.Context(), managing.Of(m).Store.Conn)).Value(t)
		open()
		one := expect.Result(m.Get(t.Context(), before+1)).Value(t, row[1])
		got := one.Definition.Properties(usual)
		var differ []string
		for i := range task.PropertyTable {
			if p := &task.PropertyTable[i]; !slices.Contains(said, p.Name) && p.Text(&got) != p.Text(&usual) {
				differ = append(differ, "`"+p.Name+"="+p.Text(&got)+"`")
			}
		}
		expect.Equal(t, cmp.Or(strings.Join(differ, ", "), "none"), row[2], row[1])
		listed++
	}
	expect.Equal(t, listed, len(ways), "ways that are listed")
}
