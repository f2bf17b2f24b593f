package manager_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/manager/managertest"
)

// The code of docs/manager.md. What has no output is compiled, and not run.

func ExampleLoad() {
	ctx := context.Background()
	m, err := manager.Load(ctx, "manager.cfg", manager.WithProgress(os.Stderr))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	const source = "https://example.org/primes.tar.gz"
	var tasks []tdf.Properties
	for n := 0; n < 100; n++ {
		input := fmt.Sprintf("%d %d", n*1000, (n+1)*1000)
		tasks = append(tasks, m.Define("primes", source, input))
	}
	if _, err := m.Open(ctx, tasks...); err != nil {
		log.Fatal(err)
	}

	primes := 0
	err = m.Run(ctx, manager.Callbacks{
		Succeeded: func(ctx context.Context, t *manager.Task) error {
			n, err := strconv.Atoi(strings.TrimSpace(t.LastOutput()))
			primes += n
			return err
		},
		Failed: func(ctx context.Context, t *manager.Task) error {
			log.Printf("task %d (%s) failed: %s", t.ID, t.Input, t.LastError())
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(primes)
}

func ExampleManager_Define() {
	m, done := load()
	defer done()
	now := tdf.At(time.Now())
	d := m.Define("simulate", "rsync:/srv/programs/simulate.tar.gz", "--seed 7")
	d.Group = "stage-1"
	d.Meta = `{"place":7}`
	d.StartAfter = now.Add(60)
	d.EndBefore = now.Add(3600)
	d.Timeout = 300
	d.MaxFails, d.MaxTimeouts = 2, 1
	d.FailOn = tdf.FailOnExit
	fmt.Println(d.Validate())
	// Output: <nil>
}

func ExampleManager_Task() {
	m, done := load()
	defer done()
	ctx := context.Background()
	ids, _ := m.Open(ctx, m.Define("square", "https://example.org/run.sh", "5"))
	_ = m.Run(ctx, manager.Callbacks{})
	id := ids[0]
	t, err := m.Task(ctx, id)
	if err != nil {
		log.Fatal(err)
	}
	for i, r := range t.Rounds.All() {
		fmt.Printf("round %d on %s: %.0f s, exit %s, %q\n", i, r.Worker, r.Seconds, r.Exit, r.Output)
	}
	fmt.Println(t.State, t.Outcome, strings.TrimSpace(t.LastOutput()))
	// Output:
	// round 0 on worker-1: 1 s, exit 0, "25\n"
	// archived succeeded 25
}

// countdown opens, for each task that succeeded, one with what it printed, down to 0.
func countdown(m *manager.Manager) manager.Callbacks {
	return manager.Callbacks{
		Succeeded: func(ctx context.Context, t *manager.Task) error {
			if next := strings.TrimSpace(t.LastOutput()); next != "0" {
				t.Open(m.Define(t.Program, t.Source, next))
			}
			return nil
		},
	}
}

// openOnce opens the tasks of a group, unless an earlier start of the manager has.
func openOnce(ctx context.Context, m *manager.Manager, group string, tasks []tdf.Properties) error {
	for i := range tasks {
		tasks[i].Group = group
	}
	_, err := m.OpenGroup(ctx, tasks...)
	if errors.Is(err, manager.ErrGroupTaken) {
		return nil
	}
	return err
}

// outputs reads what the archived tasks of a group printed, whichever start has archived them.
func outputs(ctx context.Context, m *manager.Manager, group string) ([]string, error) {
	var all []string
	for offset := int64(0); ; offset += 100 {
		ids, err := m.List(ctx, tdf.Archived, group, offset, 100)
		if err != nil || len(ids) == 0 {
			return all, err
		}
		tasks, err := m.Tasks(ctx, ids...)
		if err != nil {
			return all, err
		}
		for _, t := range tasks {
			all = append(all, t.LastOutput())
		}
	}
}

func TestStartingAgain(t *testing.T) {
	tm := managertest.New(t)
	tm.Program("double", func(r managertest.Run) managertest.Result {
		return managertest.Result{Output: r.Args[0] + r.Args[0]}
	})
	m := tm.Manager
	for range 2 {
		tasks := []tdf.Properties{m.Define("double", "https://example.org/run.sh", "1"), m.Define("double", "https://example.org/run.sh", "2")}
		if err := openOnce(t.Context(), m, "g", tasks); err != nil {
			t.Fatal(err)
		}
		if err := m.Run(t.Context(), manager.Callbacks{Groups: []string{"g"}}); err != nil {
			t.Fatal(err)
		}
		if all, err := outputs(t.Context(), m, "g"); err != nil || strings.Join(all, " ") != "11 22" {
			t.Fatalf("%q, %v", all, err)
		}
	}
}

func TestCountdown(t *testing.T) {
	tm := managertest.New(t)
	tm.Program("minus", func(r managertest.Run) managertest.Result {
		n, _ := strconv.Atoi(r.Args[0])
		return managertest.Result{Output: fmt.Sprintln(n - 1), Duration: time.Minute}
	})
	m := tm.Manager
	if _, err := m.Open(t.Context(), m.Define("minus", "https://example.org/run.sh", "3")); err != nil {
		t.Fatal(err)
	}
	if err := m.Run(t.Context(), countdown(m)); err != nil {
		t.Fatal(err)
	}
	if n := len(tm.In(tdf.Archived)); n != 3 {
		t.Errorf("%d tasks, want 3", n)
	}
}

// Each Go snippet of the guide stands in a test of this package, line by line.
func TestTheGuideIsTested(t *testing.T) {
	guide, err := os.ReadFile("../docs/manager.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	code := ""
	for _, file := range tests {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code += flush(string(text))
	}
	snippets := strings.Split(string(guide), "```go\n")[1:]
	if len(snippets) < 4 {
		t.Errorf("the guide has %d snippets of Go", len(snippets))
	}
	for _, s := range snippets {
		s, _, _ = strings.Cut(s, "```")
		if !strings.Contains(code, flush(s)) {
			t.Errorf("no test has these lines:\n%s", s)
		}
	}
}

// flush removes indentation and empty lines.
func flush(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}
