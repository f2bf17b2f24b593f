package manager_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/manager/managertest"
	"github.com/tdf-framework/tdf/worker"
	"github.com/tdf-framework/tdf/worker/workertest"
)

// This file contains the code of docs/manager.md. Examples without an output are compiled, but not run.

func Example_pipeline() {
	ctx := context.Background()
	m, err := manager.Load("manager.cfg")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	p := sumOfSquares(m, "https://example.org/squares.tar.gz")
	if err := p.Run(ctx); err != nil {
		log.Fatal(err)
	}
	for t, err := range p.Tasks(ctx, "sum") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(t.Output())
	}
}

// everyNight makes the servers open a task every night.
func everyNight(ctx context.Context, m *manager.Manager, source string) error {
	return m.Periodics().Set(ctx, manager.Periodic{
		Name: "nightly", Schedule: "30 3 * * *", Zone: "Europe/Berlin",
		Tasks: []manager.Definition{{Program: "report", Source: source, Group: "reports"}},
	})
}

func ExamplePeriodics_Set() {
	ctx := context.Background()
	m, err := manager.Load("manager.cfg")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	if err := everyNight(ctx, m, "https://example.org/report.tar.gz"); err != nil {
		log.Fatal(err)
	}
}

func ExampleLoad() {
	ctx := context.Background()
	m, err := manager.Load("manager.cfg")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	var tasks []manager.Definition
	for n := 0; n < 100; n++ {
		tasks = append(tasks, manager.Definition{
			Program: "primes",
			Source:  "https://example.org/primes.tar.gz",
			Group:   "primes",
			Input:   fmt.Sprintf("%d %d", n*1000, (n+1)*1000),
		})
	}
	if _, err := m.Open(ctx, tasks...); err != nil {
		log.Fatal(err)
	}

	primes := 0
	err = m.Run(ctx, manager.Callbacks{
		Groups: []string{"primes"},
		Succeeded: func(ctx context.Context, t *manager.Finished) error {
			n, err := strconv.Atoi(strings.TrimSpace(t.Output()))
			primes += n
			return err
		},
		Failed: func(ctx context.Context, t *manager.Finished) error {
			log.Printf("task %d (%s) failed: %s", t.ID, t.Input, t.Stderr())
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(primes)
}

func ExampleLoadOptions() {
	o, err := manager.LoadOptions("manager.cfg")
	if err != nil {
		log.Fatal(err)
	}
	o.Progress = os.Stderr
	m, err := manager.New(o)
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
}

func ExampleDefinition() {
	d := manager.Definition{
		Program:    "simulate",
		Source:     "rsync:/srv/programs/simulate.tar.gz",
		Input:      "--seed 7",
		Group:      "stage-1",
		Meta:       `{"place":7}`,
		StartAfter: time.Now().Add(time.Minute),
		EndBefore:  time.Now().Add(time.Hour),
		Timeout:    5 * time.Minute,
		MaxFails:   new(2),
		FailOn:     tdf.FailOnExit,
	}
	m, done := load()
	defer done()
	d.EndBefore = manager.NoEnd() // because the test's clock is in 2030
	tasks, err := m.Open(context.Background(), d)
	fmt.Println(len(tasks), *tasks[0].MaxLosses, err)
	// Output: 1 3 <nil>
}

// The wait, the key and the retention period of the guide's page have an effect.
func TestUniquePage(t *testing.T) {
	tm := managertest.New(t)
	tm.Program("crawl", func(r managertest.Run) managertest.Result {
		if r.Round < 2 {
			return managertest.Result{Error: "no answer"}
		}
		return managertest.Result{Duration: time.Second}
	})
	m, ctx, began := tm.Manager, t.Context(), tm.Now()

	page := manager.Definition{
		Program: "crawl", Source: source, Input: "https://example.org/",
		MaxFails: new(5), Backoff: new(10 * time.Second), // waits of about 10, 20, 40, 80 and 160 s
		Unique:       "https://example.org/", // no second task for this page until this one has finished
		KeepOutputs:  new(6 * time.Hour),     // six hours after the end, the server removes the outputs of the task
		KeepArchived: new(24 * time.Hour),    // a day after the archiving, the server removes the task
	}
	tasks, err := m.Open(ctx, page, page)
	expect.NoError(t, err)
	expect.MustLen(t, tasks, 2)
	expect.True(t, !tasks[0].Existing, tasks)
	expect.True(t, tasks[1].Existing, tasks)
	expect.Equal(t, tasks[1].ID, tasks[0].ID)
	expect.NoError(t, m.Run(ctx, manager.Callbacks{AllGroups: true}))
	if took := tm.Now().Sub(began); took < 25*time.Second || took > 37*time.Second {
		t.Errorf("it took %v, want about 31 s", took)
	}
}

// The tasks of the guide share a limit. All of them run, although the limit lets only a few of them start at once.
func TestLimitPage(t *testing.T) {
	tm := managertest.New(t)
	tm.Program("crawl", func(managertest.Run) managertest.Result { return managertest.Result{} })
	m, ctx := tm.Manager, t.Context()
	open := func() error {
		err := m.Limits().Set(ctx, "example.org", tdf.Limit{AtMost: 2, Starts: 10, Per: time.Second})
		if err != nil {
			return err
		}
		_, err = m.Open(ctx, manager.Definition{
			Program: "crawl", Source: source, Input: "https://example.org/news", LimitKey: "example.org",
		})
		return err
	}
	for range 25 {
		expect.NoError(t, open())
	}
	if limits, err := m.Limits().All(ctx); err != nil || len(limits) != 1 || limits[0].Key != "example.org" || limits[0].Starts != 10 {
		t.Errorf("limits: %+v, %v", limits, err)
	}
	done := 0
	err := m.Run(ctx, manager.Callbacks{AllGroups: true, Succeeded: func(context.Context, *manager.Finished) error { done++; return nil }})
	expect.NoError(t, err)
	expect.Equal(t, done, 25)
	expect.NoError(t, m.Limits().Remove(ctx, "example.org"))
	expect.Len(t, expect.Result(m.Limits().All(ctx)).Value(t), 0, "limits")
	if err := m.Limits().Set(ctx, "a\nb", tdf.Limit{}); !errors.As(err, new(*tdf.PropertyError)) {
		t.Errorf("an invalid key: %v", err)
	}
}

// The tasks of the guide's queue have their queue, priority and tags, and a pause holds them.
func TestQueuePage(t *testing.T) {
	tm := managertest.New(t)
	tm.Program("crawl", func(managertest.Run) managertest.Result { return managertest.Result{} })
	m, ctx := tm.Manager, t.Context()

	urgent, later := manager.Definition{
		Program: "crawl", Source: source, Input: "https://example.org/news",
		Queue: "crawl", Priority: new(5), Tags: []string{"europe"}, // for workers with queues=crawl and tags=europe
	}, manager.Definition{
		Program: "crawl", Source: source, Input: "https://example.org/archive",
		Queue: "crawl", Priority: new(-5),
	}
	tasks, err := m.Open(ctx, later, urgent) // a worker claims urgent first
	expect.NoError(t, err)
	expect.Equal(t, tasks[1].Queue, "crawl")
	expect.Equal(t, *tasks[1].Priority, 5)
	expect.Equal(t, tasks[1].Tags[0], "europe")

	expect.NoError(t, m.Pauses().Begin(ctx, tdf.Pausable{Queue: "crawl"}))
	if paused, err := m.Pauses().All(ctx); err != nil || len(paused) != 1 || paused[0].Queue != "crawl" || paused[0].By != "manager" {
		t.Errorf("paused: %+v, %v", paused, err)
	}
	expect.NoError(t, m.Pauses().End(ctx, tdf.Pausable{Queue: "crawl"}))
	expect.NoError(t, m.Run(ctx, manager.Callbacks{AllGroups: true}))
	expect.Equal(t, expect.Result(m.Counts(ctx)).Value(t)[tdf.Archived], 2, "counts")
}

func ExampleManager_Get() {
	m, done := load()
	defer done()
	ctx := context.Background()
	tasks, _ := m.Open(ctx, define("square", "https://example.org/run.sh", "5"))
	_ = m.Run(ctx, manager.Callbacks{AllGroups: true})
	id := tasks[0].ID
	t, err := m.Get(ctx, id)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range t.Rounds {
		fmt.Printf("round %d on %s: %v, exit %s, %q\n", r.Number, r.Worker, r.RunTime, r.Exit, r.Output)
	}
	fmt.Println(t.State, t.Outcome, strings.TrimSpace(t.Output()))
	// Output:
	// round 0 on worker-1: 1s, exit 0, "25\n"
	// archived succeeded 25
}

// countdown opens a follow-up for each task that succeeded. The follow-up's input is the task's output. At 0 it opens no more.
var countdown = manager.Callbacks{
	Groups: []string{"countdown"},
	Succeeded: func(ctx context.Context, t *manager.Finished) error {
		next := t.Definition
		if next.Input = strings.TrimSpace(t.Output()); next.Input != "0" {
			t.Open(next)
		}
		return nil
	},
}

// openOnce opens the tasks of a group, unless an earlier start of the manager has opened them.
func openOnce(ctx context.Context, m *manager.Manager, group string, tasks []manager.Definition) error {
	for i := range tasks {
		tasks[i].Group = group
	}
	_, err := m.OpenGroup(ctx, tasks...)
	if errors.Is(err, manager.ErrGroupTaken) {
		return nil
	}
	return err
}

// outputs returns the outputs of a group's archived tasks. An earlier start of the manager may have archived them.
func outputs(ctx context.Context, m *manager.Manager, group string) ([]string, error) {
	var all []string
	q := manager.Query{Group: group, States: []tdf.State{tdf.Archived}, Order: manager.OldestFirst, Read: manager.ReadOutput}
	for t, err := range m.List(ctx, q) {
		if err != nil {
			return nil, err
		}
		all = append(all, t.Output())
	}
	return all, nil
}

func TestStartingAgain(t *testing.T) {
	tm := managertest.New(t)
	tm.Program("double", func(r managertest.Run) managertest.Result {
		return managertest.Result{Output: r.Args[0] + r.Args[0]}
	})
	m := tm.Manager
	for range 2 {
		tasks := []manager.Definition{define("double", "https://example.org/run.sh", "1"), define("double", "https://example.org/run.sh", "2")}
		expect.NoError(t, openOnce(t.Context(), m, "g", tasks))
		expect.NoError(t, m.Run(t.Context(), manager.Callbacks{Groups: []string{"g"}}))
		expect.MustEqual(t, strings.Join(expect.Result(outputs(t.Context(), m, "g")).Value(t), " "), "11 22")
	}
}

func TestCountdown(t *testing.T) {
	tm := managertest.New(t)
	tm.Program("minus", func(r managertest.Run) managertest.Result {
		n, _ := strconv.Atoi(r.Args[0])
		return managertest.Result{Output: fmt.Sprintln(n - 1), Duration: time.Minute}
	})
	m := tm.Manager
	if _, err := m.Open(t.Context(), manager.Definition{
		Program: "minus", Source: "https://example.org/run.sh", Group: "countdown", Input: "3",
	}); err != nil {
		t.Fatal(err)
	}
	if err := m.Run(t.Context(), countdown); err != nil {
		t.Fatal(err)
	}
	if n := len(tm.In(tdf.Archived)); n != 3 {
		t.Errorf("%d tasks, want 3", n)
	}
}

// sumOfSquares computes squares in a first stage, and their sum in a second stage.
func sumOfSquares(m *manager.Manager, source string) *manager.Pipeline {
	p := m.Pipeline("squares")
	p.Start("square", func(_ context.Context, square *manager.Stage) error {
		for n := range 5 {
			square.Open(manager.Definition{Program: "square", Source: source, Input: strconv.Itoa(n)})
		}
		return nil
	})
	p.After("square", "sum", func(ctx context.Context, sum *manager.Stage) error {
		var squares []string
		for t, err := range p.Tasks(ctx, "square") {
			if err != nil {
				return err
			}
			squares = append(squares, t.Output())
		}
		sum.Open(manager.Definition{Program: "sum", Source: source, Input: strings.Join(squares, " ")})
		return nil
	})
	return p
}

func TestSumOfSquares(t *testing.T) {
	tm := managertest.New(t)
	tm.Program("square", func(r managertest.Run) managertest.Result {
		n, _ := strconv.Atoi(r.Args[0])
		return managertest.Result{Output: strconv.Itoa(n * n), Duration: time.Hour}
	})
	tm.Program("sum", func(r managertest.Run) managertest.Result {
		return managertest.Result{Output: strings.Join(r.Args, "+")}
	})
	if err := sumOfSquares(tm.Manager, "https://example.org/squares.tar.gz").Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := tm.Outputs("squares/sum"); !slices.Equal(got, []string{"0+1+4+9+16"}) {
		t.Errorf("got %q", got)
	}
}

// crawl opens the pages that a stage of index pages names, in the stage "page".
func crawl(m *manager.Manager, source string, indexes []string) *manager.Pipeline {
	p := m.Pipeline("crawl")
	p.Start("index", func(_ context.Context, index *manager.Stage) error {
		for _, url := range indexes {
			index.Open(manager.Definition{Program: "links", Source: source, Input: url})
		}
		return nil
	})
	p.Each("index", func(_ context.Context, t *manager.Finished) error {
		for _, url := range strings.Fields(t.Output()) {
			t.Open(manager.Definition{Program: "fetch", Source: source, Input: url, Group: "crawl/page"})
		}
		return nil
	})
	p.After("index", "page", func(context.Context, *manager.Stage) error {
		return nil // Each has opened all pages
	})
	return p
}

func TestCrawl(t *testing.T) {
	tm := managertest.New(t)
	tm.Program("links", func(r managertest.Run) managertest.Result {
		return managertest.Result{Output: r.Args[0] + "/1 " + r.Args[0] + "/2"}
	})
	tm.Program("fetch", func(r managertest.Run) managertest.Result { return managertest.Result{Output: r.Args[0]} })
	expect.NoError(t, crawl(tm.Manager, "https://example.org/crawl.tar.gz", []string{"a", "b"}).Run(t.Context()))
	expect.Equal(t, tm.Outputs("crawl/page"), []string{"a/1", "a/2", "b/1", "b/2"})
}

var _, _ = runWorker, withLog // only compiled, because they need a Redis and a server

func withLog(next worker.Handler) worker.Handler {
	return func(ctx context.Context, r *worker.Round) error {
		err := next(ctx, r)
		if err != nil {
			slog.Error("round failed", "task", r.ID, "error", err)
		}
		return err
	}
}

func runWorker(ctx context.Context) error {
	w, err := worker.Load("hosts-1", "worker.cfg", worker.Handle("lookup", lookup))
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

func lookup(ctx context.Context, r *worker.Round) error {
	var in struct{ Host string }
	if err := r.Bind(&in); err != nil {
		return err // the task fails, whatever max_fails is
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, in.Host)
	if e := new(net.DNSError); errors.As(err, &e) && e.IsTemporary {
		return worker.Later(time.Minute, err) // after a minute, the task runs again
	}
	if err != nil {
		return err // the round fails; max_fails decides whether the task runs again
	}
	return r.SetResult(addresses)
}

func TestLookup(t *testing.T) {
	result := workertest.Run(t.Context(), lookup, workertest.Task{Input: `{"Host": "127.0.0.1"}`})
	if result.Err != nil || result.JSON != `["127.0.0.1"]` {
		t.Errorf("got %+v", result)
	}
}

func TestParallelCallbacks(t *testing.T) {
	tm := managertest.New(t)
	tm.Program("p", func(managertest.Run) managertest.Result { return managertest.Result{} })
	d := manager.Definition{Program: "p", Group: "g"}
	if _, err := tm.Manager.Open(t.Context(), d, d); err != nil {
		t.Fatal(err)
	}
	both := make(chan bool) // one callback sends, the other one receives
	err := tm.Manager.Run(t.Context(), manager.Callbacks{
		Groups: []string{"g"}, Concurrency: 2,
		Succeeded: func(context.Context, *manager.Finished) error {
			select {
			case both <- true:
			case <-both:
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPoisonCallback(t *testing.T) {
	tm := managertest.New(t)
	tm.Program("p", func(managertest.Run) managertest.Result { return managertest.Result{} })
	if _, err := tm.Manager.Open(t.Context(), manager.Definition{Program: "p", Group: "g"}); err != nil {
		t.Fatal(err)
	}
	attempts := 0
	err := tm.Manager.Run(t.Context(), manager.Callbacks{
		Groups: []string{"g"}, Attempts: 3,
		Succeeded: func(context.Context, *manager.Finished) error {
			attempts++
			return errors.New("the database is gone")
		},
	})
	if !errors.Is(err, manager.ErrGivenUp) || attempts != 3 {
		t.Errorf("got %v after %d attempts", err, attempts)
	}
}

func TestNightly(t *testing.T) {
	tm := managertest.New(t)
	tm.Program("report", func(managertest.Run) managertest.Result { return managertest.Result{} })
	if err := everyNight(t.Context(), tm.Manager, "https://example.org/run.sh"); err != nil {
		t.Fatal(err)
	}
	var opened []string
	err := tm.Manager.Run(t.Context(), manager.Callbacks{
		Groups: []string{"reports"},
		Succeeded: func(_ context.Context, f *manager.Finished) error {
			opened = append(opened, f.Opened.UTC().Format("2 Jan 15:04"))
			return nil
		},
		Stop: func(context.Context, manager.Summary) bool { return len(opened) == 3 },
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"1 Jan 02:30", "2 Jan 02:30", "3 Jan 02:30"}; !slices.Equal(opened, want) {
		t.Errorf("the tasks were opened at %q", opened)
	}
}

// Each Go snippet of the guide also occurs in a test of this package.
func TestTheGuideIsTested(t *testing.T) {
	guide := expect.Result(os.ReadFile("../docs/manager.md")).Value(t)
	guide = append(guide, expect.Result(os.ReadFile("../docs/testing.md")).Value(t)...)
	tests, err := filepath.Glob("*_test.go")
	expect.NoError(t, err)
	code := ""
	for _, file := range tests {
		text, err := os.ReadFile(file)
		expect.NoError(t, err)
		code += flush(string(text))
	}
	snippets := strings.Split(string(guide), "```go\n")[1:]
	expect.True(t, len(snippets) >= 4, "the guide has", len(snippets), "snippets of Go")
	for _, s := range snippets {
		s, _, _ = strings.Cut(s, "```")
		if strings.Contains(s, "package main") { // tests of package cmd run it
			continue
		}
		if !strings.Contains(code, flush(s)) {
			t.Errorf("no test has these lines:\n%s", s)
		}
	}
}

// flush returns the text without indentation and empty lines.
func flush(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

// split cancels a task that no worker has claimed, and opens its parts instead. If the task is no longer open, nothing happens.
func split(ctx context.Context, m *manager.Manager, t *manager.Task, parts ...manager.Definition) ([]*manager.Task, error) {
	tx := m.Transaction()
	tx.Cancel(t)
	tx.Open(parts...)
	opened, err := tx.Commit(ctx)
	if refused := new(manager.StepError); errors.As(err, &refused) {
		for _, c := range refused.Changed {
			log.Printf("task %d was %v, and is %v now", c.ID, c.Wanted, c.Found)
		}
	}
	return opened, err
}

func TestSplit(t *testing.T) {
	tm := managertest.New(t)
	whole, err := tm.Manager.Open(t.Context(), define("p", source, "1 2"))
	expect.NoError(t, err)
	parts, err := split(t.Context(), tm.Manager, whole[0], define("p", source, "1"), define("p", source, "2"))
	expect.NoError(t, err)
	expect.Len(t, parts, 2)
	expect.Len(t, tm.In(tdf.Expired), 1)
	parts, err = split(t.Context(), tm.Manager, whole[0], define("p", source, "1"), define("p", source, "2"))
	if e := new(manager.StepError); parts != nil || !errors.As(err, &e) || len(tm.Tasks()) != 3 {
		t.Errorf("%v, %v", parts, err)
	}
}

// nextStage opens the tasks of the next stage, if the group is complete. It returns false if the group is not complete, or if
// another manager has opened the next stage.
func nextStage(ctx context.Context, m *manager.Manager, group string, tasks ...manager.Definition) (bool, error) {
	tx := m.Transaction()
	tx.Decide(group)
	tx.Open(tasks...)
	_, err := tx.Commit(ctx)
	if errors.Is(err, tdf.ErrGroupUnfinished) || errors.Is(err, tdf.ErrGroupDecided) {
		return false, nil
	}
	return err == nil, err
}

func TestNextStage(t *testing.T) {
	tm := managertest.New(t)
	m := tm.Manager
	first, err := m.Open(t.Context(), ofGroup("g", "a"))
	must(t, err)
	must(t, m.CloseGroup(t.Context(), "g"))
	for i, want := range []bool{false, true, false} {
		expect.Result(nextStage(t.Context(), m, "g", ofGroup("next", "b"))).Is(t, want, "call", i)
		_, err := m.Cancel(t.Context(), first[0].Ref())
		must(t, err)
	}
	expect.Len(t, tm.Tasks(), 2, "tasks")
}

// film renders the frames of a film, and joins them when all frames are rendered. It returns the last task.
func film(ctx context.Context, m *manager.Manager, source string, frames int) (*manager.Task, error) {
	join := manager.Definition{Program: "join", Source: source, After: &manager.Dependencies{}}
	var all []manager.Definition
	for n := range frames {
		all = append(all, manager.Definition{Program: "render", Source: source, Input: strconv.Itoa(n)})
		join.After.Places = append(join.After.Places, n) // the task at place n of this call
	}
	tasks, err := m.Open(ctx, append(all, join)...)
	if err != nil {
		return nil, err
	}
	return tasks[frames], nil
}

func TestFilm(t *testing.T) {
	tm, _ := newTester(t)
	for _, name := range []string{"render", "join"} {
		tm.Program(name, func(managertest.Run) managertest.Result { return managertest.Result{} })
	}
	last, err := film(t.Context(), tm.Manager, source, 3)
	expect.NoError(t, err)
	expect.MustEqual(t, last.ID, 4)
	var programs []string
	run(t, tm.Manager, manager.Callbacks{AllGroups: true, Succeeded: func(_ context.Context, f *manager.Finished) error {
		programs = append(programs, f.Program)
		return nil
	}})
	expect.Equal(t, strings.Join(programs, " "), "render render render join")
}
