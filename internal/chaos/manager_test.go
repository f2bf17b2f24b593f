package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/tdf-framework/tdf/manager"
)

// managerVariable is an environment variable with the configuration file of a manager. If it is set, this test program
// is a manager. The first line of its stdin names the program of all tasks, and each further line is a batch to open. It
// writes messages to stdout, and calls callbacks until the end of its stdin.
const managerVariable = "CHAOS_MANAGER"

func managerMain(file string) int {
	var out sync.Mutex
	tell := func(m message) error {
		out.Lock()
		defer out.Unlock()
		return writeLine(os.Stdout, m)
	}
	if err := manage(file, tell); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func manage(file string, tell func(message) error) error {
	m, err := manager.Load(file)
	if err != nil {
		return err
	}
	defer m.Close()
	ctx, end := context.WithCancel(context.Background())
	defer end()
	lines := bufio.NewScanner(os.Stdin)
	var p stored
	lines.Scan()
	if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
		return err
	}
	handle := func(_ context.Context, t *manager.Finished) error {
		if next := following(t.Input); next != "" && next[0] == 'f' {
			t.Open(p.definition(next))
		}
		return tell(message{Callback: &callback{t.ID, t.Input, t.Output()}})
	}
	ran := make(chan error, 1)
	go func() {
		ran <- m.Run(ctx, manager.Callbacks{
			Groups: []string{group}, Succeeded: handle, Failed: handle, Concurrency: 4, Attempts: -1,
			Stop: func(context.Context, manager.Summary) bool { return false },
		})
	}()
	for lines.Scan() {
		var b batch
		if err := json.Unmarshal(lines.Bytes(), &b); err != nil {
			return err
		}
		go func() {
			if err := tell(open(ctx, m, p, b)); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}()
	}
	end()
	if err := <-ran; err != nil && ctx.Err() == nil {
		return err
	}
	return lines.Err()
}

func open(ctx context.Context, m *manager.Manager, p stored, b batch) message {
	call := m.Open
	if b.Key != "" {
		call = func(ctx context.Context, all ...manager.Definition) ([]*manager.Task, error) {
			return m.OpenOnce(ctx, b.Key, all...)
		}
	}
	tasks, err := call(ctx, p.definitions(b)...)
	if err != nil {
		return message{Batch: &b, Error: err.Error()}
	}
	for _, t := range tasks {
		b.IDs = append(b.IDs, t.ID)
	}
	return message{Batch: &b}
}
