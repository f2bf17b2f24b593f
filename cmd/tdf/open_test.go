package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testlog"
)

// A call is one of tdf open in this process, on a namespace of its own.
type call struct {
	t          *testing.T
	addr       string // of Redis
	namespace  string
	told       context.Context
	again      context.Context
	out, err   testlog.Buffer
	tell, push context.CancelFunc // the first signal, and the second
}

func newCall(t *testing.T, addr string) *call {
	c := &call{t: t, addr: addr, namespace: redistest.Namespace(t)}
	c.reset()
	return c
}

// reset makes it ready for another start on the same namespace.
func (c *call) reset() {
	c.told, c.tell = context.WithCancel(c.t.Context())
	c.again, c.push = context.WithCancel(c.t.Context())
	c.out, c.err = testlog.Buffer{}, testlog.Buffer{}
}

func (c *call) open(stdin io.Reader, args ...string) int {
	all := append([]string{"open", "--redis", c.addr, "--namespace", c.namespace, "--program", "p", "--source", "https://example.org/run.sh"}, args...)
	return run(c.told, c.again, all, stdin, &c.out, &c.err)
}

// ids returns those of the tasks that are open.
func (c *call) ids(addr string) []string {
	c.t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	ids, err := client.ZRange(context.Background(), c.namespace+":open", 0, -1).Result()
	if err != nil {
		c.t.Fatal(err)
	}
	return ids
}

func (c *call) check(what string, got string, want ...string) {
	c.t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			c.t.Errorf("%s is\n%s, want %q in it", what, got, w)
		}
	}
}

// wait polls until ok.
func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick, limit := time.NewTicker(5*time.Millisecond), time.NewTimer(scriptLimit)
	defer tick.Stop()
	defer limit.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("waited for %s in vain", what)
		}
	}
}

func csvOf(first, last int) string {
	var b strings.Builder
	for i := first; i <= last; i++ {
		fmt.Fprintf(&b, "%d\n", i)
	}
	return b.String()
}

// Rows that come slowly are opened as they come; who is told to stop says what was opened, and is told how to go on.
func TestOpenInterrupted(t *testing.T) {
	addr := redistest.Shared(t)
	c := newCall(t, addr)
	stdin, rows := io.Pipe()
	var status int
	var ended sync.WaitGroup
	ended.Go(func() { status = c.open(stdin, "--from", "-", "--format", "csv", "--campaign", "c") })
	if _, err := io.WriteString(rows, "a\n"+csvOf(1, 1200)); err != nil {
		t.Fatal(err)
	}
	wait(t, "1200 tasks", func() bool { return len(c.ids(addr)) == 1200 })
	c.tell()
	ended.Wait()
	rows.Close()
	if status != statusInterrupted {
		t.Errorf("status %d", status)
	}
	c.check("stdout", c.out.String(), "1-1200\n")
	c.check("stderr", c.err.String(), "interrupted: 1200 tasks opened; the same with --extend --campaign c opens the rest")

	c.reset()
	if status := c.open(strings.NewReader("a\n"+csvOf(1, 1500)), "--from", "-", "--format", "csv", "--campaign", "c", "--extend"); status != 0 {
		t.Errorf("status %d: %s", status, c.err.String())
	}
	c.check("stdout", c.out.String(), "1201-1500\n")
	c.check("stderr", c.err.String(), "1200 points were there already", "opened 300 tasks")
}

// Two open the same new campaign: each has seen that it is new, and only one opens it.
func TestOpenAtOnce(t *testing.T) {
	addr := redistest.Shared(t)
	late := newCall(t, addr)
	stdin, rows := io.Pipe()
	var status int
	var ended sync.WaitGroup
	ended.Go(func() { status = late.open(stdin, "--from", "-", "--format", "csv", "--campaign", "c") })
	wait(t, "the late one to have looked", func() bool { return strings.Contains(late.err.String(), "fail_on is") })
	early := newCall(t, addr)
	early.namespace = late.namespace
	if status := early.open(nil, "--grid", "a=1..3", "--campaign", "c"); status != 0 {
		t.Errorf("status %d: %s", status, early.err.String())
	}
	if _, err := io.WriteString(rows, "a\n"+csvOf(1, 1200)); err != nil {
		t.Fatal(err)
	}
	rows.Close()
	ended.Wait()
	if status != statusRefused || late.out.String() != "" {
		t.Errorf("status %d, stdout %q", status, late.out.String())
	}
	late.check("stderr", late.err.String(), "campaign c has tasks that somebody else opened just now; --extend opens the points")
	if n := len(late.ids(addr)); n != 3 {
		t.Errorf("%d tasks", n)
	}
}

// Rows that end because it was told to stop are not all there are, whichever of the two it hears of first.
func TestOpenInterruptedIsNotDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rows := make(chan feed)
	close(rows)
	for range 100 {
		if err := new(openRun).takeAll(ctx, t.Context(), rows); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
	}
}

// Who is told to stop while a file is checked has opened nothing.
func TestOpenInterruptedEarly(t *testing.T) {
	addr := redistest.Shared(t)
	proxy := redistest.NewProxy(t, addr)
	var asked atomic.Bool // what the campaign has; then the rows are checked
	proxy.DropReplies(1, func(command []string) bool {
		asked.Store(asked.Load() || redistest.Scripts(command))
		return false
	})
	c := newCall(t, proxy.Addr)
	var status int
	var ended sync.WaitGroup
	ended.Go(func() { status = c.open(nil, "--grid", "a=1..99999 b=1..1000", "--campaign", "c") })
	wait(t, "the beginning", asked.Load)
	c.tell()
	ended.Wait()
	if status != statusInterrupted || c.out.String() != "" || len(c.ids(addr)) > 0 {
		t.Errorf("status %d, stdout %q, %d tasks", status, c.out.String(), len(c.ids(addr)))
	}
	c.check("stderr", c.err.String(), "interrupted; nothing was opened")
}

// A reply that is lost makes no task come twice.
func TestOpenThroughLostReplies(t *testing.T) {
	addr := redistest.Shared(t)
	proxy := redistest.NewProxy(t, addr)
	c := newCall(t, proxy.Addr)
	proxy.DropReplies(3, func(command []string) bool { return redistest.Scripts(command) && len(command) > 1000 })
	if status := c.open(nil, "--grid", "a=1..1300", "--campaign", "c"); status != 0 {
		t.Errorf("status %d: %s", status, c.err.String())
	}
	if proxy.Dropped() != 3 {
		t.Errorf("%d replies were dropped", proxy.Dropped())
	}
	c.check("stdout", c.out.String(), "1-1300\n")
	if n := len(c.ids(addr)); n != 1300 {
		t.Errorf("%d tasks", n)
	}
}

// A second signal ends the wait for a Redis that does not answer, and what is not known is not claimed.
func TestOpenWhileRedisHangs(t *testing.T) {
	addr := redistest.Shared(t)
	proxy := redistest.NewProxy(t, addr)
	c := newCall(t, proxy.Addr)
	stdin, rows := io.Pipe()
	var status int
	var ended sync.WaitGroup
	ended.Go(func() { status = c.open(stdin, "--from", "-", "--format", "csv", "--campaign", "c") })
	if _, err := io.WriteString(rows, "a\n"+csvOf(1, 10)); err != nil {
		t.Fatal(err)
	}
	wait(t, "10 tasks", func() bool { return len(c.ids(addr)) == 10 })
	proxy.DropReplies(1<<30, redistest.Scripts) // of the next ones: a reply on its way still comes
	if _, err := io.WriteString(rows, csvOf(11, 17)); err != nil {
		t.Fatal(err)
	}
	wait(t, "a call", func() bool { return proxy.Dropped() > 0 })
	proxy.Hang()
	wait(t, "another one", func() bool { return proxy.Held() > 0 })
	c.tell()
	c.push()
	ended.Wait()
	rows.Close()
	if status != statusInterrupted {
		t.Errorf("status %d", status)
	}
	c.check("stdout", c.out.String(), "1-10\n")
	// The pause of a second may be over when only some of the seven rows have come.
	want := regexp.MustCompile(`interrupted: 10 tasks opened, and [1-7] tasks? more may have been: Redis did not answer; the same with --extend`)
	if !want.MatchString(c.err.String()) {
		t.Errorf("stderr is\n%s, want %s", c.err.String(), want)
	}
	proxy.Resume()
}

// A Redis that is full takes no more; when there is room again, the rest is opened.
func TestOpenUntilRedisIsFull(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	limit := func(bytes int) {
		if err := client.ConfigSet(t.Context(), "maxmemory", strconv.Itoa(bytes)).Err(); err != nil {
			t.Fatal(err)
		}
	}
	used, err := strconv.Atoi(client.InfoMap(t.Context(), "memory").Item("Memory", "used_memory"))
	if err != nil {
		t.Fatal(err)
	}
	limit(used + 5<<20)
	file := filepath.Join(t.TempDir(), "points.csv")
	if err := os.WriteFile(file, []byte("a\n"+csvOf(1, 20_000)+"1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newCall(t, server.Addr)
	if status := c.open(nil, "--from", file, "--campaign", "c"); status != statusFailed {
		t.Errorf("status %d", status)
	}
	first := len(c.ids(server.Addr))
	if first == 0 || first >= 20_000 {
		t.Fatalf("%d tasks were opened", first)
	}
	c.check("stdout", c.out.String(), "1-"+strconv.Itoa(first)+"\n")
	c.check("stderr", c.err.String(), fmt.Sprintf("%d tasks opened; the same with --extend --campaign c opens the rest", first), "redis is full")

	limit(0)
	c.reset()
	if status := c.open(nil, "--from", file, "--campaign", "c", "--extend"); status != 0 {
		t.Errorf("status %d: %s", status, c.err.String())
	}
	if n := len(c.ids(server.Addr)); n != 20_001 {
		t.Errorf("%d tasks, want 20001: those of the file, which has one point twice", n)
	}
}
