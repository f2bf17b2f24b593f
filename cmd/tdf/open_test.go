package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/open"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testlog"
)

// A call runs tdf open in this process, in a separate namespace.
type call struct {
	t         *testing.T
	addr      string // address of Redis
	namespace string
	ctx       context.Context
	force     context.Context
	out, err  testlog.Buffer

	interrupt, interruptAgain context.CancelFunc // send the first and the second signal
}

func newCall(t *testing.T, addr string) *call {
	c := &call{t: t, addr: addr, namespace: redistest.Namespace(t)}
	c.reset()
	return c
}

// reset prepares another call in the same namespace.
func (c *call) reset() {
	c.ctx, c.interrupt = context.WithCancel(c.t.Context())
	c.force, c.interruptAgain = context.WithCancel(c.t.Context())
	c.out, c.err = testlog.Buffer{}, testlog.Buffer{}
}

func (c *call) open(stdin io.Reader, args ...string) int {
	all := append([]string{"open", "--redis", c.addr, "--namespace", c.namespace, "--program", "p", "--source", "https://example.org/run.sh"}, args...)
	return c.run(stdin, all...)
}

func (c *call) run(stdin io.Reader, args ...string) int {
	return execute(c.ctx, cli.Process{Stdin: stdin, Stdout: &c.out, Stderr: &c.err, Force: c.force}, args...)
}

// ids returns the ids of the open tasks.
func (c *call) ids(addr string) []string {
	c.t.Helper()
	client := redistest.Client(c.t, redis.Options{Addr: addr})
	return expect.Result(client.ZRange(context.Background(), c.namespace+":open", 0, -1).Result()).Value(c.t)
}

func (c *call) check(name string, got string, want ...string) {
	c.t.Helper()
	for _, w := range want {
		expect.Contains(c.t, got, w, name, "in it")
	}
}

// csvOf returns rows for a CSV with one column: the numbers from first to last.
func csvOf(first, last int) string {
	var b strings.Builder
	for i := first; i <= last; i++ {
		fmt.Fprintf(&b, "%d\n", i)
	}
	return b.String()
}

// An interrupted tdf open prints the ids of the opened tasks, and the command that opens the remaining tasks: tdf open
// --extend.
func TestOpenInterrupted(t *testing.T) {
	addr := redistest.Shared(t)
	c := newCall(t, addr)
	stdin, rows := io.Pipe()
	var status int
	var ended sync.WaitGroup
	ended.Go(func() { status = c.open(stdin, "--from", "-", "--format", "csv", "--campaign", "c") })
	expect.Result(io.WriteString(rows, "a\n"+csvOf(1, 1200))).OK(t)
	expect.Eventually(t, "1200 tasks", func() bool { return len(c.ids(addr)) == 1200 })
	c.interrupt()
	ended.Wait()
	rows.Close()
	expect.Equal(t, status, cli.StatusInterrupted, "status")
	c.check("stdout", c.out.String(), "1-1200\n")
	c.check("stderr", c.err.String(), "interrupted: opened 1200 tasks;", "--extend --campaign c")

	c.reset()
	expect.Equal(t, c.open(strings.NewReader("a\n"+csvOf(1, 1500)), "--from", "-", "--format", "csv", "--campaign", "c", "--extend"), 0)
	c.check("stdout", c.out.String(), "1201-1500\n")
	c.check("stderr", c.err.String(), "skipped 1200 points", "opened 300 tasks")
}

// If two commands open the same new campaign, only one of them succeeds.
func TestOpenTwiceAtOnce(t *testing.T) {
	addr := redistest.Shared(t)
	late := newCall(t, addr)
	stdin, rows := io.Pipe()
	var status int
	var ended sync.WaitGroup
	ended.Go(func() { status = late.open(stdin, "--from", "-", "--format", "csv", "--campaign", "c") })
	expect.Eventually(t, "the check of the late command", func() bool {
		return strings.Contains(late.err.String(), "no --input: run.sh gets")
	})
	early := newCall(t, addr)
	early.namespace = late.namespace
	expect.Equal(t, early.open(nil, "--grid", "a=1..3", "--campaign", "c"), 0, "status", early.err.String())
	expect.Result(io.WriteString(rows, "a\n"+csvOf(1, 1200))).OK(t)
	rows.Close()
	ended.Wait()
	expect.Equal(t, status, cli.StatusRefused)
	expect.Equal(t, late.out.String(), "", "status", status)
	late.check("stderr", late.err.String(), "campaign c was opened by another command just now; --extend")
	expect.Equal(t, len(late.ids(addr)), 3, "tasks")
}

// An extension beside the first opening of a campaign: each point is opened once. If the first command can read its rows
// again, it opens those that the other one does not have.
func TestExtendBesideTheFirstOpening(t *testing.T) {
	addr := redistest.Shared(t)
	for from, want := range map[string]struct {
		status int
		stderr string
	}{
		"--grid a=1..1500":      {0, "skipped 950 points that the campaign already has\nopened 550 tasks in campaign c"},
		"--from - --format csv": {cli.StatusFailed, "opened 250 tasks; repeat with --extend --campaign c to open the rest"},
	} {
		proxy := redistest.NewProxy(t, addr)
		first := newCall(t, proxy.Addr)
		beside := newCall(t, addr)
		beside.namespace = first.namespace
		openings := 0
		proxy.DropReplies(1, func(command []string) bool {
			if redistest.Scripts(command) && len(command) > 300 {
				openings++
			}
			if openings == 2 { // the first 250 tasks are opened
				openings++
				expect.Equal(t, beside.open(nil, "--grid", "a=1..1200", "--campaign", "c", "--extend"), 0, beside.err.String())
			}
			return false
		})
		args := append(strings.Fields(from), "--campaign", "c")
		expect.Equal(t, first.open(strings.NewReader("a\n"+csvOf(1, 1500)), args...), want.status, from, first.err.String())
		first.check("stderr", first.err.String(), want.stderr)
		beside.check("stderr", beside.err.String(), "skipped 250 points", "opened 950 tasks")
		expect.Equal(t, len(first.ids(addr)), 1200+map[int]int{0: 300}[want.status], from)
	}
}

// If a signal ends the reading of rows, the command reports the signal, and no error about the rows.
func TestOpenReportsTheSignal(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rows := make(chan open.Feed)
	close(rows)
	for range 100 {
		err := new(open.OpenRun).TakeAll(ctx, t.Context(), rows)
		expect.MustTrue(t, errors.Is(err, context.Canceled), err)
	}
}

// A signal during the check of the rows ends the command before it opens a task.
func TestOpenInterruptedWhileChecking(t *testing.T) {
	addr := redistest.Shared(t)
	proxy := redistest.NewProxy(t, addr)
	var asked atomic.Bool // true when the command has asked for the counts of the campaign; next, it checks the rows
	proxy.DropReplies(1, func(command []string) bool {
		begins := strings.Contains(strings.Join(command, " "), ":replication_id") // the first script of each connection
		asked.Store(asked.Load() || redistest.Scripts(command) && !begins)
		return false
	})
	c := newCall(t, proxy.Addr)
	var status int
	var ended sync.WaitGroup
	ended.Go(func() { status = c.open(nil, "--grid", "a=1..9999 b=1..1000", "--campaign", "c") })
	expect.Eventually(t, "the first call", asked.Load)
	c.interrupt()
	ended.Wait()
	expect.Equal(t, status, cli.StatusInterrupted)
	expect.Equal(t, c.out.String(), "", "status", status)
	expect.Len(t, c.ids(addr), 0, "status", status)
	c.check("stderr", c.err.String(), "interrupted; nothing was opened")
}

// If a reply of Redis is lost, the command repeats the call. No task is opened twice.
func TestOpenThroughLostReplies(t *testing.T) {
	addr := redistest.Shared(t)
	proxy := redistest.NewProxy(t, addr)
	c := newCall(t, proxy.Addr)
	proxy.DropReplies(3, func(command []string) bool { return redistest.Scripts(command) && len(command) > 300 })
	expect.Equal(t, c.open(nil, "--grid", "a=1..1300", "--campaign", "c"), 0, "status", c.err.String())
	expect.Equal(t, proxy.Dropped(), 3, "replies were dropped")
	c.check("stdout", c.out.String(), "1-1300\n")
	expect.Equal(t, len(c.ids(addr)), 1300, "tasks")
}

// If Redis does not answer, a second signal ends the command. The command reports how many tasks it may
// have opened.
func TestOpenWhileRedisHangs(t *testing.T) {
	addr := redistest.Shared(t)
	proxy := redistest.NewProxy(t, addr)
	c := newCall(t, proxy.Addr)
	stdin, rows := io.Pipe()
	var status int
	var ended sync.WaitGroup
	ended.Go(func() { status = c.open(stdin, "--from", "-", "--format", "csv", "--campaign", "c") })
	expect.Result(io.WriteString(rows, "a\n"+csvOf(1, 10))).OK(t)
	expect.Eventually(t, "10 tasks", func() bool { return len(c.ids(addr)) == 10 })
	proxy.DropReplies(1<<30, func(command []string) bool { // only of calls that open later rows
		return redistest.Scripts(command) && slices.Contains(command, `{"a":11}`)
	})
	expect.Result(io.WriteString(rows, csvOf(11, 17))).OK(t)
	expect.Eventually(t, "a lost reply", func() bool { return proxy.Dropped() > 0 })
	proxy.Hang()
	expect.Eventually(t, "a call that hangs", func() bool { return proxy.Held() > 0 })
	c.interrupt()
	c.interruptAgain()
	ended.Wait()
	rows.Close()
	expect.Equal(t, status, cli.StatusInterrupted, "status")
	c.check("stdout", c.out.String(), "1-10\n")
	// The first call may contain only some of the seven rows.
	want := regexp.MustCompile(`interrupted: opened 10 tasks, and perhaps [1-7] tasks? more: .*--extend`)
	expect.True(t, want.MatchString(c.err.String()), "stderr is", c.err.String(), "want", want)
	proxy.Resume()
}

// If Redis is full and high_water is 1, the command ends with an error. When Redis has free memory again, --extend opens the remaining
// tasks.
func TestOpenUntilRedisIsFull(t *testing.T) {
	server := redistest.Start(t)
	client := redistest.Client(t, redis.Options{Addr: server.Addr})
	limit := func(bytes int) {
		expect.NoError(t, client.ConfigSet(t.Context(), "maxmemory", strconv.Itoa(bytes)).Err())
	}
	used := expect.Result(strconv.Atoi(client.InfoMap(t.Context(), "memory").Item("Memory", "used_memory"))).Value(t)
	limit(used + 5<<20)
	file := filepath.Join(t.TempDir(), "points.csv")
	expect.NoError(t, os.WriteFile(file, []byte("a\n"+csvOf(1, 20_000)+"1\n"), 0o600))
	c := newCall(t, server.Addr)
	expect.NoError(t, client.HSet(t.Context(), c.namespace+":settings", "high_water", "1").Err())
	expect.Equal(t, c.open(nil, "--from", file, "--campaign", "c"), cli.StatusFailed, "status")
	first := len(c.ids(server.Addr))
	expect.MustTrue(t, first != 0, first, "tasks were opened")
	expect.MustTrue(t, first < 20_000, first, "tasks were opened")
	c.check("stdout", c.out.String(), "1-"+strconv.Itoa(first)+"\n")
	c.check("stderr", c.err.String(), fmt.Sprintf("opened %d tasks;", first), "--extend --campaign c", "redis is full")

	limit(0)
	c.reset()
	expect.Equal(t, c.open(nil, "--from", file, "--campaign", "c", "--extend"), 0, "status", c.err.String())
	expect.Equal(t, len(c.ids(server.Addr)), 20_001, "tasks")
}
