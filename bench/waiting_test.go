package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/access"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/web"
)

// apiVariable is the address of the Redis for which this process serves the HTTP API, as a child of the benchmark.
const apiVariable = "TDF_BENCH_API"

// serveAPI serves the HTTP API until stdin ends, and gives back unused memory whenever a line comes. It prints its address and a token.
func serveAPI(redis string) error {
	host, port, err := net.SplitHostPort(redis)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	m, err := manager.New(manager.Options{Namespace: "waiting", Redis: config.Redis{Host: host, Port: n}})
	if err != nil {
		return err
	}
	defer m.Close()
	token, err := admin.New(m).AddToken(context.Background(), access.Token{Name: "t", Role: access.Worker})
	if err != nil {
		return err
	}
	s := httptest.NewServer(web.New(m, web.Options{PerAddress: 1 << 20, PerToken: 1 << 20}))
	defer s.Close()
	fmt.Printf("%s %s\n", s.URL, token)
	line := make([]byte, 1)
	for {
		if _, err := os.Stdin.Read(line); err == io.EOF {
			os.Exit(0) // without waiting for the calls
		}
		debug.FreeOSMemory()
		fmt.Println("freed")
	}
}

// BenchmarkWaitingWorkers measures what 10,000 calls of idle workers cost that wait for tasks over HTTP: the memory of the process that serves the API, and the
// commands that Redis runs in a second, with those of scripts. The calls belong to 100 workers with 4 different offers.
func BenchmarkWaitingWorkers(b *testing.B) {
	const calls, workers, offers, measured = 10_000, 100, 4, 20 * time.Second
	r := emptyRedis(b)
	child := exec.CommandContext(b.Context(), os.Args[0])
	child.Env, child.Stderr = append(os.Environ(), apiVariable+"="+r.Addr()), os.Stderr
	in, err := child.StdinPipe()
	check(b, err)
	out, err := child.StdoutPipe()
	check(b, err)
	check(b, child.Start())
	defer func() { in.Close(); _ = child.Wait() }()
	var url, token string
	_, err = fmt.Fscan(out, &url, &token)
	check(b, err)
	memory := func() float64 {
		fmt.Fprintln(in)
		var word string
		_, err := fmt.Fscan(out, &word)
		check(b, err)
		return rss(b, child.Process.Pid)
	}
	before := memory()
	var sessions []string
	for i := range workers {
		sessions = append(sessions, register(b, url, token, fmt.Sprintf(`{"name":"w%d","lease":300,"tags":["t%d"]}`, i, i%offers)))
	}
	var tries atomic.Int64
	ended := make(chan string, calls)
	for i := range calls {
		go func() {
			for b.Context().Err() == nil {
				tries.Add(1)
				answer := waitForTask(b.Context(), url, token, sessions[i%workers])
				// until the API has room for the first claim
				if !strings.Contains(answer, " 503 ") && !strings.Contains(answer, " 429 ") {
					ended <- answer
					return
				}
				time.Sleep(time.Second)
			}
		}()
	}
	for last := int64(0); last < tries.Load(); time.Sleep(3 * time.Second) { // until all calls wait
		last = tries.Load()
	}
	from, err := r.Usage(b.Context())
	check(b, err)
	time.Sleep(measured)
	to, err := r.Usage(b.Context())
	check(b, err)
	after := memory()
	select {
	case answer := <-ended:
		b.Fatalf("a call does not wait any more: %s", answer)
	default:
	}
	b.ReportMetric(to.Minus(from).Commands/measured.Seconds(), "commands/s")
	b.ReportMetric(after/1e6, "MB")
	b.ReportMetric((after-before)/calls, "B/call")
	b.ReportMetric(0, "ns/op")
}

// waitForTask claims a task, and returns the beginning of the answer.
func waitForTask(ctx context.Context, url, token, session string) string {
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		return err.Error()
	}
	defer context.AfterFunc(ctx, func() { c.Close() })()
	defer c.Close()
	const body = `{"wait":60}`
	fmt.Fprintf(c, "POST /api/v1/work/%s/claims HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", session, token, len(body), body)
	text := make([]byte, 1000)
	n, err := c.Read(text)
	return fmt.Sprintf("%s %v", text[:n], err)
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// register registers a worker, and returns its session.
func register(b *testing.B, url, token, body string) string {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url+"/api/v1/work", strings.NewReader(body))
	check(b, err)
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	check(b, err)
	defer answer.Body.Close()
	var registered struct{ Session string }
	check(b, json.NewDecoder(answer.Body).Decode(&registered))
	return registered.Session
}

// rss returns the memory of a process in bytes.
func rss(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	check(b, err)
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	var kib float64
	_, err = fmt.Sscan(rest, &kib)
	check(b, err)
	return kib * 1024
}
