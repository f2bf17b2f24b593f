package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testlog"
	"github.com/tdf-framework/tdf/internal/testspace"
)

// tdf serve serves the API until its context ends.
func TestServe(t *testing.T) {
	space := testspace.Config(t, redistest.Shared(t))
	global := []string{"--redis", space.Redis.Addr(), "--namespace", space.Namespace, "--set", "redis.db=" + strconv.Itoa(space.Redis.DB)}
	var token bytes.Buffer
	add := append(global, "token", "add", "ci", "--role", "operator")
	expect.MustEqual(t, run(t.Context(), cli.Process{Stdout: &token, Stderr: io.Discard}, add...), 0, "status")

	ctx, end := context.WithCancel(t.Context())
	defer end()
	var log testlog.Buffer
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, cli.Process{Stdout: io.Discard, Stderr: &log}, append(global, "serve", "--listen", "127.0.0.1:0")...)
	}()
	var base string
	expect.Eventually(t, "the address", func() bool {
		found := regexp.MustCompile(`listens on (http://127\.0\.0\.1:\d+);`).FindStringSubmatch(log.String())
		if found != nil {
			base = found[1]
		}
		return found != nil
	})
	call := func(method, path, body string) (int, string) {
		t.Helper()
		request := expect.Result(http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))).Value(t)
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token.String()))
		request.Header.Set("Content-Type", "application/json")
		response := expect.Result(http.DefaultClient.Do(request)).Value(t)
		defer response.Body.Close()
		text := expect.Result(io.ReadAll(response.Body)).Value(t)
		return response.StatusCode, string(text)
	}
	status, text := call("POST", "/api/v1/tasks", `{"program": "p", "source": "rsync:/nowhere/run.sh", "input": "5"}`)
	expect.Equal(t, status, http.StatusCreated)
	expect.Contains(t, text, `"ids":[1]`, "opening", status)
	status, text = call("GET", "/api/v1/tasks/1", "")
	expect.Equal(t, status, http.StatusOK)
	expect.Contains(t, text, `"state":"open"`, "reading", status)
	http.DefaultClient.CloseIdleConnections()
	end()
	expect.Equal(t, <-done, 0, "status")
	expect.NotContains(t, log.String(), strings.TrimSpace(token.String()))
	expect.Contains(t, log.String(), "path=/api/v1/tasks/1")
}
